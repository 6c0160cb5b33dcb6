package framework

// Cloner is state that preemption's dry runs can copy before they change it.
type Cloner interface{ CloneState() any }

// CycleState carries what plug-ins compute for one pod from one extension point to the next, by plug-in name. It belongs to
// one goroutine.
type CycleState struct {
	data map[string]any
	// SkipFilter and SkipScore name the plug-ins that had nothing to do in PreFilter and PreScore.
	SkipFilter, SkipScore map[string]bool
}

// NewCycleState returns an empty state.
func NewCycleState() *CycleState {
	return &CycleState{data: map[string]any{}, SkipFilter: map[string]bool{}, SkipScore: map[string]bool{}}
}

// Read returns what was written under key, nil if nothing was.
func (c *CycleState) Read(key string) any { return c.data[key] }

// Write keeps v under key.
func (c *CycleState) Write(key string, v any) { c.data[key] = v }

// Clone copies the state; values that are Cloners are copied, others shared.
func (c *CycleState) Clone() *CycleState {
	n := NewCycleState()
	for k, v := range c.data {
		if cl, ok := v.(Cloner); ok {
			v = cl.CloneState()
		}
		n.data[k] = v
	}
	for k := range c.SkipFilter {
		n.SkipFilter[k] = true
	}
	for k := range c.SkipScore {
		n.SkipScore[k] = true
	}
	return n
}
