package why

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// CommandLine is text for a shell: a command or a part of one. Words of others in it are quoted. It is made by Command
// and Word, so that a text that nobody quoted is no CommandLine to the compiler.
type CommandLine string

// placeholder stands for a word that nobody could copy, or that would be read as a flag. The user writes the name.
const placeholder = "NAME"

// plainWord are words that no shell reads as more than a word: in zsh, a = at the beginning names a program.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@+,][A-Za-z0-9_./:=@%+,-]*$`)

// Word is a text of others as one word. Names of RBAC's objects, field managers, references of pods and messages of
// events may have any characters, and whoever chooses them chooses them for whoever copies the command. What a terminal
// would not show, or kubectl would take for a flag (a ClusterRole may be named --all), is left to the user.
func Word(text string) CommandLine {
	switch {
	case plainWord.MatchString(text):
		return CommandLine(text)
	case strings.HasPrefix(text, "-"), strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsPrint(r) || r == unicode.ReplacementChar
	}):
		return placeholder
	}
	return CommandLine("'" + strings.ReplaceAll(text, "'", `'\''`) + "'")
}

// Command is a command line. Its arguments become words of it, except numbers and those that are CommandLine already.
func Command(format string, args ...any) CommandLine {
	words := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case CommandLine, int, int32, int64:
			words[i] = a
		default:
			words[i] = Word(fmt.Sprint(a))
		}
	}
	return CommandLine(fmt.Sprintf(format, words...))
}

// Then puts commands together: each runs if the one before it has done its work.
func Then(commands ...CommandLine) (all CommandLine) {
	for i, c := range commands {
		if i > 0 {
			all += " && "
		}
		all += c
	}
	return all
}

// To returns the command line with flags of kubectl that say which cluster it is for: after the verb of each command,
// as plug-ins want it (kubectl refuses flags before a plug-in's name).
func (l CommandLine) To(flags CommandLine) CommandLine {
	if flags == "" {
		return l
	}
	commands := strings.Split(string(l), " && ") // as Then puts them together, or as it stands within quotes
	quoted := false
	for i, c := range commands {
		program, rest, _ := strings.Cut(c, " ")
		verb, rest, more := strings.Cut(rest, " ")
		if !quoted && program == "kubectl" && verb != "" {
			commands[i] = program + " " + verb + " " + string(flags)
			if more {
				commands[i] += " " + rest
			}
		}
		quoted = quoted != inQuotes(c)
	}
	return CommandLine(strings.Join(commands, " && "))
}

// inQuotes reports whether text of a command line, as Word quotes it, ends within single quotes.
func inQuotes(text string) bool {
	return strings.Count(strings.ReplaceAll(text, `\'`, ""), "'")%2 == 1
}

// To returns an answer whose commands are for one cluster: flags are those of kubectl that name it.
func (a Answer) To(flags CommandLine) Answer {
	if flags != "" {
		a.Causes = causesTo(a.Causes, flags)
	}
	return a
}

// causesTo copies causes, which several answers may share.
func causesTo(causes []Cause, flags CommandLine) []Cause {
	causes = slices.Clone(causes)
	for i := range causes {
		c := &causes[i]
		c.Fixes = slices.Clone(c.Fixes)
		for j := range c.Fixes {
			c.Fixes[j].Command = c.Fixes[j].Command.To(flags)
		}
		c.Because = causesTo(c.Because, flags)
	}
	return causes
}
