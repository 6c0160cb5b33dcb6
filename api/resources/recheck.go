package resources

// Recheck says how the rules of a kind look at an object's metadata at an update, after the registry has looked at that
// of every kind: once as at that of a new object, once for what changed. What is wrong is told at every look, and so
// stands several times among the causes of a 422.
type Recheck uint8

// What is looked at again. The zero value is what most kinds have, and what every subresource has of a kind that looks
// at all.
const (
	// RecheckChange looks at what changed: finalizers may not lack a domain, nor may labels and what else can change be
	// wrong.
	RecheckChange Recheck = iota
	// RecheckWhole looks as at a new object.
	RecheckWhole
	// RecheckBoth looks at what changed, then as at a new object.
	RecheckBoth
	// RecheckNothing looks at neither.
	RecheckNothing
)
