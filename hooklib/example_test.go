package hooklib_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/session-keeper/session-keeper/hooklib"
)

// A hook that has something to say when a session starts. As a program, its
// main is
//
//	func main() { os.Exit(hooklib.Main(hook)) }
func Example() {
	hook := hooklib.Hook{
		Name: "greeter",
		On: hooklib.Handlers{
			SessionStart: func(_ context.Context, c *hooklib.Call, e *hooklib.SessionStart) (hooklib.SessionStartOutput, error) {
				if e.Source == hooklib.SourceCompact {
					return hooklib.SessionStartOutput{}, nil // nothing to say
				}
				return hooklib.SessionStartOutput{AdditionalContext: "The tests run with make test."}, nil
			},
		},
	}
	stdin := strings.NewReader(`{"session_id":"84784f3a","hook_event_name":"SessionStart","source":"startup"}`)
	code := hooklib.Run(hook, nil, stdin, os.Stdout, os.Stderr)
	fmt.Println("exit code", code)
	// Output:
	// {"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"The tests run with make test."}}
	// exit code 0
}

// One handler for whatever event the hook is wired to.
func ExampleHook_handle() {
	hook := hooklib.Hook{
		Name: "say-goodbye",
		Handle: func(_ context.Context, c *hooklib.Call) error {
			switch e := c.Event.(type) {
			case *hooklib.SessionEnd:
				fmt.Fprintf(c.Stdout, "session %s ended: %s\n", e.SessionID, e.Reason)
			default:
				c.Log.Log(hooklib.Info, "not for this hook", "event", e.Base().Name)
			}
			return nil
		},
	}
	stdin := strings.NewReader(`{"session_id":"84784f3a","hook_event_name":"SessionEnd","reason":"clear"}`)
	code := hooklib.Run(hook, nil, stdin, os.Stdout, os.Stderr)
	fmt.Println("exit code", code)
	// Output:
	// session 84784f3a ended: clear
	// exit code 0
}

// A failure that the user must see has a hint, and the exit code is 1.
func ExampleFailure() {
	hook := hooklib.Hook{
		Name: "say-goodbye",
		Handle: func(context.Context, *hooklib.Call) error {
			return &hooklib.Failure{Err: fmt.Errorf("the disk is full"), Hint: "make room"}
		},
	}
	code := hooklib.Run(hook, nil, strings.NewReader(`{}`), os.Stdout, os.Stdout)
	fmt.Println("exit code", code)
	// Output:
	// say-goodbye: error: the disk is full
	// say-goodbye: hint: make room
	// exit code 1
}

// Nothing of an event is lost: what this package does not know is in Extra.
func ExampleReadEvent() {
	stdin := strings.NewReader(`{"hook_event_name":"Brewed","session_id":"84784f3a","cups":2}`)
	event, err := hooklib.ReadEvent(stdin, time.Now().Add(time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(event.Base().Name, string(event.Base().Extra["cups"]))
	// Output: Brewed 2
}

// A hook that keeps the model at work until a file is there.
func ExampleStopOutput() {
	hook := hooklib.Hook{
		Name: "notes",
		On: hooklib.Handlers{
			Stop: func(_ context.Context, c *hooklib.Call, e *hooklib.Stop) (out hooklib.StopOutput, err error) {
				if _, err := os.Stat("no-such-notes.md"); err != nil && !e.StopHookActive {
					out.Block = "Write down in no-such-notes.md what you found."
				}
				return out, nil
			},
		},
	}
	stdin := strings.NewReader(`{"session_id":"84784f3a","hook_event_name":"Stop","stop_hook_active":false}`)
	fmt.Println("exit code", hooklib.Run(hook, nil, stdin, os.Stdout, os.Stderr))
	// Output:
	// {"decision":"block","reason":"Write down in no-such-notes.md what you found."}
	// exit code 0
}

// A tool is refused, or gets another input.
func ExamplePermission() {
	event, err := hooklib.ParseEvent([]byte(`{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -r build"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, permission := range []hooklib.Permission{
		hooklib.Deny{Reason: "Use make clean."},
		hooklib.Ask{UpdatedInput: map[string]string{"command": "make clean"}},
	} {
		answer, err := hooklib.Encode(event, hooklib.PreToolUseOutput{Permission: permission})
		fmt.Print(string(answer), err, "\n")
	}
	// Output:
	// {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Use make clean."}}
	// <nil>
	// {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","updatedInput":{"command":"make clean"}}}
	// <nil>
}

// What the client sent, what it did not, and what was null.
func ExampleCommon_Field() {
	event, err := hooklib.ParseEvent([]byte(`{"hook_event_name":"PreCompact","custom_instructions":null,"brand_new":[1,2]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	e := event.Base()
	fmt.Printf("%s %s %v\n", e.Field("custom_instructions"), e.Field("brand_new"), e.Has("permission_mode"))
	// Output: null [1,2] false
}

// A text is shortened to what the client takes.
func ExampleCut() {
	text := strings.Repeat("😀", hooklib.MaxText)
	short := hooklib.Cut(text, hooklib.MaxText)
	fmt.Println(hooklib.Units(text), hooklib.Units(short))
	// Output: 20000 10000
}

// How long there is, by the client's rules.
func ExampleBudget() {
	env := hooklib.ReadEnv(func(string) string { return "" })
	fmt.Println(hooklib.Budget(hooklib.NameSessionEnd, 0, env))
	fmt.Println(hooklib.Budget(hooklib.NameSessionEnd, 90*time.Second, env))
	fmt.Println(hooklib.Budget(hooklib.NameSessionStart, 0, env))
	// Output:
	// 1.5s
	// 1m0s
	// 10m0s
}

// An event that Cursor sent, which runs the hooks of Claude Code's settings.
func ExampleForeign() {
	event, err := hooklib.ParseEvent([]byte(`{"hook_event_name":"sessionStart","cursor_version":"3.2.16","transcript_path":null}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hooklib.Foreign(event, hooklib.Env{}))
	// Output: cursor
}
