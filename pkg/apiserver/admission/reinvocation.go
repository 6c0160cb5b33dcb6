package admission

// reinvocation is the second round of the mutating plug-ins of a request. Webhooks and policies ask for it, so that
// each plug-in sees what the later ones made of the object. There is never a third round: two plug-ins that undo each
// other's changes would never end.
type reinvocation struct {
	wanted, second bool
	kept           map[string]any
}

// Reinvoke asks for the second round. In the second round it has no effect.
func (a *Attributes) Reinvoke() { a.reinvocation.wanted = true }

// Reinvoked reports whether this is the second round.
func (a *Attributes) Reinvoked() bool { return a.reinvocation.second }

// SetReinvocationValue remembers v for the plug-in called name until the second round.
func (a *Attributes) SetReinvocationValue(name string, v any) {
	if a.reinvocation.kept == nil {
		a.reinvocation.kept = map[string]any{}
	}
	a.reinvocation.kept[name] = v
}

// ReinvocationValue returns what the plug-in called name remembered in the first round; nil if nothing.
func (a *Attributes) ReinvocationValue(name string) any { return a.reinvocation.kept[name] }
