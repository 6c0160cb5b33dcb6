package framework

import "slices"

// Cloner is state that preemption's dry runs can copy before they change it.
type Cloner interface{ CloneState() any }

// CycleState carries what plug-ins compute for one pod from one extension point to the next, by plug-in name. It
// belongs to one goroutine.
type CycleState struct {
	data map[string]any
	// skipFilter and skipScore name the plug-ins that had nothing to do in PreFilter and PreScore.
	skipFilter, skipScore []string
	// Laps times the plug-ins; nil: nothing is timed. A clone, which preemption tries things with, has none.
	Laps *Laps
}

// SkipFilter notes that the plug-in's Filter has nothing to do.
func (c *CycleState) SkipFilter(plugin string) { c.skipFilter = append(c.skipFilter, plugin) }

// SkipsFilter reports whether SkipFilter was called.
func (c *CycleState) SkipsFilter(plugin string) bool { return slices.Contains(c.skipFilter, plugin) }

// SkipScore notes that the plug-in's Score has nothing to do.
func (c *CycleState) SkipScore(plugin string) { c.skipScore = append(c.skipScore, plugin) }

// SkipsScore reports whether SkipScore was called.
func (c *CycleState) SkipsScore(plugin string) bool { return slices.Contains(c.skipScore, plugin) }

// NewCycleState returns an empty state.
func NewCycleState() *CycleState {
	return &CycleState{}
}

// Read returns what was written under key, nil if nothing was.
func (c *CycleState) Read(key string) any { return c.data[key] }

// Write keeps v under key.
func (c *CycleState) Write(key string, v any) {
	if c.data == nil {
		c.data = map[string]any{}
	}
	c.data[key] = v
}

// Clone copies the state; values that are Cloners are copied, others shared.
func (c *CycleState) Clone() *CycleState {
	n := &CycleState{
		data:       make(map[string]any, len(c.data)),
		skipFilter: slices.Clone(c.skipFilter),
		skipScore:  slices.Clone(c.skipScore),
	}
	for k, v := range c.data {
		if cl, ok := v.(Cloner); ok {
			v = cl.CloneState()
		}
		n.data[k] = v
	}
	return n
}
