package hooktest

import (
	"reflect"

	"github.com/session-keeper/session-keeper/hooklib"
)

// outputFields returns the fields of an event's output, but for those that
// nearly all have.
func outputFields(event string) (fields []string) {
	handler, ok := reflect.TypeFor[hooklib.Handlers]().FieldByName(event)
	if !ok || handler.Type.NumOut() < 2 {
		return nil
	}
	for _, f := range reflect.VisibleFields(handler.Type.Out(0)) {
		if f.Name != "SystemMessage" && f.Name != "TerminalSequence" {
			fields = append(fields, f.Name)
		}
	}
	return fields
}
