// Package fieldmanager maintains metadata.managedFields, which records which manager set which field of an object with
// which operation, and serves server-side apply.
//
// # Two engines
//
// Upstream's library (apimachinery's managedfields on structured-merge-diff) defines the right answer. It converts each
// object to typed values through an OpenAPI schema, and reads and writes every field set for each write. A fast path
// serves the common writes, and steps aside for the library in all other cases:
//
//   - [Manager.Update] compares two objects (the typed comparison, comparison), or encodes the fields of a new one
//     (encoder). Both walk the Go values, or decoded JSON, along a compiled type (typeNode).
//   - [Manager.Apply] plans an apply (applyPlan): one walk of the configuration beside the live object writes the field
//     set and gathers the edits.
//
// [Manager.Merge] always uses the library.
//
// # Why the fast path may stand for the library
//
// The fast path serves a write only if nothing but the values decides the answer:
//
//   - All entries are in the version of the write, so no field set has to be converted. No two entries belong to the
//     same manager, operation and subresource.
//   - The client sent managedFields back unchanged, or did not send them. Anything else may reset or forge entries.
//   - The schema compiled to a typeNode. Types with several shapes, and lists that are neither sets nor keyed, did not.
//   - Lists have at most maxElements elements, each with a key, and no duplicates.
//   - An update leaves at most maxUpdaters entries. Beyond that the library merges the oldest.
//   - An apply removes nothing that its manager applied before, and changes nothing that other managers own: it can
//     neither delete a field nor conflict, so force makes no difference.
//
// In every other case the fast path returns errNeedsLibrary and leaves its objects as they were, and the library starts
// from the beginning. The library therefore produces all error messages that a client sees.
//
// Under these conditions the fast path computes what the library computes. A field set is the set of paths that differ
// between two values, and the shapes of a typeNode split values at the same paths as the schema does. JSON decides
// equality, so an omitted field has no path, and null is not the empty value. Entries whose fields do not change keep
// their bytes.
//
// There is one difference. The fast path does not look at parts that no manager owns, such as the status in a write of
// the spec. The library converts those too, and fails if they are invalid; the object would then lose all its entries.
//
// Tests prove the equality against the library itself. Random histories of updates (TestUpdateFastMatchesLibrary,
// TestDynamicUpdateMatchesLibrary) and of applies (TestApplyFastMatchesLibrary, FuzzApply) run both engines for every
// kind. They compare entries and objects, and fail if too few writes take the fast path.
//
// docs/decisions/managed-fields.md has the decision and what it costs.
package fieldmanager
