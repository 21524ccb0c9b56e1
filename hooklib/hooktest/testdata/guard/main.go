// Command guard keeps generated files as they were generated.
package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/session-keeper/session-keeper/hooklib"
)

func main() {
	os.Exit(hooklib.Main(hooklib.Hook{
		Name: "guard",
		On:   hooklib.Handlers{SessionStart: start, PreToolUse: check},
	}))
}

func start(context.Context, *hooklib.Call, *hooklib.SessionStart) (hooklib.SessionStartOutput, error) {
	return hooklib.SessionStartOutput{AdditionalContext: "Files named *.pb.go are generated from *.proto files."}, nil
}

func check(_ context.Context, _ *hooklib.Call, e *hooklib.PreToolUse) (out hooklib.PreToolUseOutput, err error) {
	var input struct {
		FilePath string `json:"file_path"`
	}
	if json.Unmarshal(e.ToolInput, &input) == nil && strings.HasSuffix(input.FilePath, ".pb.go") {
		out.Permission = hooklib.Deny{Reason: "This file is generated: change the .proto file."}
	}
	return out, nil
}
