package render

import (
	"fmt"
	"reflect"
)

// Format is fmt.Sprintf for a terminal: strings, errors, Stringers and values of
// string types among args are foreign and go through Text; Safe values stay as
// they are. format is the program's own.
func Format(format string, args ...any) string {
	escaped := make([]any, len(args))
	for i, a := range args {
		escaped[i] = foreign(a)
	}
	return fmt.Sprintf(format, escaped...)
}

func foreign(a any) any {
	switch v := a.(type) {
	case nil:
		return a
	case Safe:
		return string(v)
	case string:
		return Text(v)
	case error:
		return Text(v.Error())
	case fmt.Stringer:
		return Text(v.String())
	}
	switch v := reflect.ValueOf(a); v.Kind() {
	case reflect.String:
		return Text(v.String())
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct, reflect.Pointer:
		return Text(fmt.Sprint(a))
	}
	return a
}
