package tour

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"bonsai/pkg/termtext"
)

// Namespace is where a tour makes its objects. It is deleted at the end.
const Namespace = "bonsai-tour"

// Bounds of a command's answer: how long the tour waits until it is what the text says, and how often it looks.
const (
	patience = 2 * time.Minute
	interval = 500 * time.Millisecond
)

// Player plays chapters.
type Player struct {
	// Kubectl runs kubectl with arguments and an input, and returns all that it printed. An error is one of running it,
	// not its exit code.
	Kubectl func(ctx context.Context, args []string, input string) (string, error)
	Out     io.Writer
	// Next waits until the reader wants to go on, and reports whether that is so.
	Next func() bool
	// Width is where prose wraps, in columns.
	Width int
	// shown are the objects that were shown, as JSON, by kind/name.
	shown map[string]string
}

// Wrong is an answer that is not what the text says.
type Wrong struct {
	Chapter, Step, Command, Output, Expected string
}

// Error implements error.
func (w *Wrong) Error() string {
	return fmt.Sprintf("chapter %s, step %q: %s answered\n%s\nwhich does not match %s", w.Chapter, w.Step,
		w.Command, termtext.Escape(w.Output), w.Expected)
}

// Play plays a chapter in a namespace of its own, which it deletes at the end, whatever came between. It returns nil if
// the reader left.
func (p *Player) Play(ctx context.Context, c Chapter) (err error) {
	p.shown = map[string]string{}
	if err := p.namespace(ctx, "create", "created"); err != nil {
		return err
	}
	defer func() {
		p.say("\nThe tour's namespace is deleted, with all that is in it.")
		if failed := p.namespace(context.WithoutCancel(ctx), "delete", "deleted"); err == nil {
			err = failed
		}
	}()
	p.say("\n" + strings.ToUpper(c.Title))
	for _, paragraph := range c.Intro {
		p.prose(paragraph)
	}
	for i, s := range c.Steps {
		if !p.Next() {
			return nil
		}
		p.say(fmt.Sprintf("\n%d of %d. %s", i+1, len(c.Steps), s.Title))
		for _, part := range s.Parts {
			if err := p.part(ctx, c, s, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// namespace makes or deletes the tour's namespace. done is what kubectl says when it has.
func (p *Player) namespace(ctx context.Context, verb, done string) error {
	out, err := p.Kubectl(ctx, []string{verb, "namespace", Namespace}, "")
	switch {
	case err != nil:
		return fmt.Errorf("%s the namespace %s of the tour: %w", verb, Namespace, err)
	case !strings.Contains(out, done):
		return fmt.Errorf("%s the namespace %s of the tour: %s", verb, Namespace, strings.TrimSpace(out))
	}
	return nil
}

func (p *Player) part(ctx context.Context, c Chapter, s Step, part Part) error {
	switch {
	case part.Prose != "":
		p.prose(part.Prose)
	case part.Where != "":
		p.say("  In the code: " + part.Where)
	case part.Try != "":
		p.prose("Try it yourself: " + part.Try)
	case part.Command != nil:
		return p.command(ctx, c, s, part.Command)
	case part.Changes != "":
		return p.changes(ctx, part.Changes)
	}
	return nil
}

// command runs a command until it answers what the text says.
func (p *Player) command(ctx context.Context, c Chapter, s Step, cmd *Command) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p.say("\n  $ " + cmd.Line)
	if cmd.Input != "" {
		p.say(indent(cmd.Input))
	}
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		out, err := p.Kubectl(ctx, append([]string{"-n", Namespace}, cmd.Args...), cmd.Input)
		if err != nil {
			return err
		}
		missing := unmatched(cmd, out)
		if missing == "" {
			p.say(indent(out))
			return nil
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return &Wrong{c.Name, s.Title, cmd.Line, out, missing}
		}
	}
}

// unmatched returns the first expression that an output does not match, "" if it matches all.
func unmatched(cmd *Command, out string) string {
	for _, e := range cmd.Expect {
		if !e.MatchString(out) {
			return e.String()
		}
	}
	return ""
}

// changes shows what has changed in an object.
func (p *Player) changes(ctx context.Context, object string) error {
	out, err := p.Kubectl(ctx, []string{"-n", Namespace, "get", object, "-o", "json"}, "")
	if err != nil {
		return err
	}
	lines, err := changes(p.shown[object], out)
	if err != nil {
		return fmt.Errorf("%s: %w", object, err)
	}
	p.shown[object] = out
	p.say("\n  " + object + ":\n" + indent(strings.Join(lines, "\n")))
	return nil
}

// say writes a line, in which nothing that others wrote into their objects steers the terminal. An output that cannot
// be written has nobody who would read the error.
func (p *Player) say(text string) {
	_, _ = io.WriteString(p.Out, termtext.Escape(strings.TrimRight(text, "\n"))+"\n")
}

// prose writes a paragraph, wrapped.
func (p *Player) prose(text string) {
	line := ""
	p.say("")
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > p.Width {
			p.say(line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	p.say(line)
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
