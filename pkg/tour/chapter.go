package tour

import (
	"bufio"
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

//go:embed chapters/*.txt
var files embed.FS

// Chapter is one subject, such as the life of a pod.
type Chapter struct {
	// Name is how a user asks for it, and Title what it is about.
	Name, Title string
	Intro       []string
	Steps       []Step
}

// Step is one thing that happens.
type Step struct {
	Title string
	// Parts are shown in their order.
	Parts []Part
}

// Part is a piece of a step; exactly one of its fields is set.
type Part struct {
	// Prose is one paragraph.
	Prose string
	// Where names a function of the code, as path:function, or an object of it.
	Where string
	// Command is run in the tour's namespace.
	Command *Command
	// Changes names an object, as kind/name; what has changed in it since it was last named is shown.
	Changes string
	// Try is what readers may try by themselves.
	Try string
}

// Command is one of kubectl's.
type Command struct {
	// Line is how readers would type it.
	Line string
	// Args follow "kubectl". Input is what it reads.
	Args  []string
	Input string
	// Expect are what its output must match, all of them, soon.
	Expect []*regexp.Regexp
}

// order is that in which a newcomer reads the chapters.
var order = []string{"pod", "service", "rollout", "scheduling", "storage", "failure"}

// Chapters returns all chapters in the order in which they are best read.
func Chapters() ([]Chapter, error) {
	var list []Chapter
	for _, name := range order {
		text, err := fs.ReadFile(files, "chapters/"+name+".txt")
		if err != nil {
			return nil, err
		}
		c, err := Parse(name, string(text))
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// Parse reads a chapter. Lines that begin with these are no prose:
//
//	# Title            of the chapter; paragraphs up to the first step are its introduction
//	## Title           of a step
//	$ kubectl …        a command; words may stand in single quotes
//	= EXPRESSION       a regular expression that the output of the command above must match
//	where PATH:NAME    where this happens in the code
//	changes KIND/NAME  shows what has changed in an object
//	try TEXT           something for the reader to try
//
// A command may go on in the lines below it that begin with four spaces: they are its standard input.
func Parse(name, text string) (Chapter, error) {
	c := Chapter{Name: name}
	var step *Step
	paragraph := ""
	add := func(p Part) {
		if step == nil {
			c.Intro = append(c.Intro, p.Prose)
			return
		}
		step.Parts = append(step.Parts, p)
	}
	end := func() {
		if paragraph != "" {
			add(Part{Prose: paragraph})
			paragraph = ""
		}
	}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		word, rest, _ := strings.Cut(line, " ")
		marked := slices.Contains([]string{"#", "##", "$", "=", "where", "changes", "try"}, word)
		if marked || line == "" || strings.HasPrefix(line, "    ") {
			end()
		}
		if step == nil && marked && word != "#" && word != "##" {
			return c, fmt.Errorf("chapter %s, line %d: %q stands before the first step", name, n, word)
		}
		switch {
		case line == "":
		case strings.HasPrefix(line, "    "):
			last := lastCommand(step)
			if last == nil || len(last.Expect) > 0 {
				return c, fmt.Errorf("chapter %s, line %d: input without a command above it", name, n)
			}
			last.Input += strings.TrimPrefix(line, "    ") + "\n"
		case word == "#":
			c.Title = rest
		case word == "##":
			c.Steps = append(c.Steps, Step{Title: rest})
			step = &c.Steps[len(c.Steps)-1]
		case word == "$":
			argv, err := split(rest)
			if err != nil || argv[0] != "kubectl" {
				return c, fmt.Errorf("chapter %s, line %d: no command of kubectl: %v", name, n, err)
			}
			add(Part{Command: &Command{Line: rest, Args: argv[1:]}})
		case word == "=":
			expression, err := regexp.Compile(rest)
			last := lastCommand(step)
			if err != nil || last == nil {
				return c, fmt.Errorf("chapter %s, line %d: no expression for a command: %v", name, n, err)
			}
			last.Expect = append(last.Expect, expression)
		case word == "where":
			add(Part{Where: rest})
		case word == "changes":
			add(Part{Changes: rest})
		case word == "try":
			add(Part{Try: rest})
		case paragraph == "":
			paragraph = line
		default:
			paragraph += " " + line
		}
	}
	end()
	if c.Title == "" || len(c.Steps) == 0 {
		return c, fmt.Errorf("chapter %s has no title or no steps", name)
	}
	return c, nil
}

// lastCommand returns the command that a step ends with so far, nil if it ends otherwise.
func lastCommand(s *Step) *Command {
	if s == nil || len(s.Parts) == 0 {
		return nil
	}
	return s.Parts[len(s.Parts)-1].Command
}

// split cuts a command line at spaces outside single quotes.
func split(line string) (words []string, err error) {
	word, quoted, begun := "", false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				words = append(words, word)
			}
			word, begun = "", false
		default:
			word, begun = word+string(r), true
		}
	}
	if begun {
		words = append(words, word)
	}
	if quoted || len(words) == 0 {
		return nil, fmt.Errorf("an open quote, or nothing, in %q", line)
	}
	return words, nil
}
