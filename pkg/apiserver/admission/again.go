package admission

// again is the second round of the mutating plug-ins of a request. Those that change an object by what others say
// (webhooks, policies) ask for it, so that everybody has seen what everybody made of the object; there is never a
// third.
type again struct {
	wanted, second bool
	kept           map[string]any
}

// Repeat asks for the second round; in it nothing more happens.
func (a *Attributes) Repeat() { a.again.wanted = true }

// Repeated tells that this is the second round.
func (a *Attributes) Repeated() bool { return a.again.second }

// Keep remembers v for the plug-in called name until the second round.
func (a *Attributes) Keep(name string, v any) {
	if a.again.kept == nil {
		a.again.kept = map[string]any{}
	}
	a.again.kept[name] = v
}

// Kept returns what the plug-in called name has kept of the first round, nil if nothing.
func (a *Attributes) Kept(name string) any { return a.again.kept[name] }
