package main

import (
	"net/http"
	"strings"
	"testing"

	"bonsai/pkg/controller/controllertest"
)

// migration: the controller's own account may do what it needs, also for custom resources.
func (w *world) migration(t *testing.T) {
	w.define(t, "migrated.example.com", "Cluster", "")
	const migrations = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"
	for name, resource := range map[string]string{
		"secrets": `{"group":"","resource":"secrets"}`, "foos": `{"group":"migrated.example.com","resource":"foos"}`,
	} {
		w.must(t, http.MethodPost, migrations, `{"metadata":{"name":"`+name+`"},"spec":{"resource":`+resource+`}}`)
		controllertest.Eventually(t, name+" to be migrated", func() string {
			_, answer := w.ask(t, http.MethodGet, migrations+"/"+name, "")
			if !strings.Contains(answer, `"reason":"MigrationCompleted"`) {
				return answer
			}
			if !strings.Contains(answer, `"reason":"StorageVersionMigrationSucceeded"`) {
				t.Fatal(answer)
			}
			return ""
		})
	}
	_, answer := w.ask(t, http.MethodGet, definitions+"/foos.migrated.example.com", "")
	if !strings.Contains(answer, `"reason":"MigrationSucceeded"`) {
		t.Error(answer)
	}
	w.must(t, http.MethodDelete, definitions+"/foos.migrated.example.com", "")
}
