package commands

// values returns what can stand as the next argument of a command after the
// arguments that are there.
func (in *invocation) values(command string, arguments []string) []candidate {
	switch command {
	case "completion":
		if len(arguments) == 0 {
			return []candidate{{"bash", ""}, {"zsh", ""}, {"fish", ""}}
		}
	case "help":
		if len(arguments) == 0 {
			return commandWords("")
		}
		return secondWords(arguments[0], "")
	}
	return nil
}

// flagValues returns what can stand as the value of a flag.
func (in *invocation) flagValues(flag string, arguments []string) []candidate {
	switch flag {
	case "data-dir":
		return []candidate{{filesMark, ""}}
	}
	return nil
}
