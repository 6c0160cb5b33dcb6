package framework

// Fields names fields of pods and nodes by their path: JSON names joined by dots, such as "spec.tolerations". A path
// goes through lists ("spec.containers.image"), and names one entry of a map in brackets ("metadata.annotations[KEY]").
// A path stands for everything below it.
type Fields struct{ Pod, Node []string }

// FieldReader plug-ins read fields of pods or nodes that not every decision reads. The scheduler keeps only the fields
// that are declared so, and those in package slim: a plug-in finds all others empty, as if they were unset.
type FieldReader interface{ Fields() Fields }
