package why

import (
	"fmt"
	"regexp"
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
