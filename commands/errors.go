package commands

import "fmt"

// A usageError says that the command line cannot be understood.
type usageError struct {
	message  string
	hint     []string // arguments of the command that helps; nil: none
	overview bool     // show the list of commands
}

func (e *usageError) Error() string { return e.message }

// usage returns a usage error of the command.
func (in *invocation) usage(format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...), hint: helpOn(in.entry.name)}
}

// An unaskedError says that a person would have to be asked and nobody is there.
type unaskedError struct {
	question string
	instead  string // the command that does it without a question
}

func (e *unaskedError) Error() string { return e.question }

// findings are a result that is a failure: its text has been shown, its data
// become the details.
type findings struct {
	exit    int
	code    string
	message string
	hint    string
	data    any
}

func (e *findings) Error() string { return e.message }
