package openapi

func query(name, kind, description string) param {
	return param{name: name, kind: kind, description: description}
}

// selectionParams say which objects of a collection are meant.
func selectionParams() []param {
	return []param{
		query("continue", "string", "The token of the page before, to read the next one."),
		query("fieldSelector", "string", "Restrict the answer by fields. Everything by default."),
		query("labelSelector", "string", "Restrict the answer by labels. Everything by default."),
		query("limit", "integer", "The most items of a page."),
		resourceVersionParam(),
		query("resourceVersionMatch", "string", "How resourceVersion is applied to a list."),
		query("sendInitialEvents", "boolean", "Begin a watch with the present objects, and mark their end with a bookmark."),
		query("timeoutSeconds", "integer", "End the call after this time."),
	}
}

func listParams() []param {
	return append(selectionParams(),
		query("allowWatchBookmarks", "boolean", "Ask for BOOKMARK events in a watch."),
		query("watch", "boolean", "Stream the changes instead of listing."))
}

func resourceVersionParam() param {
	return query("resourceVersion", "string", "Which state of the data may be served; see the API concepts on resource versions.")
}

func writeParams() []param {
	return []param{
		dryRunParam(),
		query("fieldManager", "string", "The name of the actor that makes the change."),
		query("fieldValidation", "string", "What to do with unknown and duplicate fields: Ignore, Warn or Strict."),
	}
}

func patchParams() []param {
	return append(writeParams(), query("force", "boolean", "Take over conflicting fields in an apply patch."))
}

func deleteParams() []param {
	return []param{
		dryRunParam(),
		query("gracePeriodSeconds", "integer", "Seconds before the object is deleted; 0 deletes at once."),
		query("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean", "Delete even an object that cannot be read from storage."),
		query("orphanDependents", "boolean", "Deprecated: use propagationPolicy."),
		query("propagationPolicy", "string", "What becomes of dependents: Orphan, Background or Foreground."),
	}
}

func dryRunParam() param {
	return query("dryRun", "string", "All: go through every stage but store nothing.")
}
