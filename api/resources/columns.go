package resources

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// NameColumn is the first column of every table.
func NameColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name",
		Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]}
}

// AgeColumn is how long ago an object was created; its cell is Age's.
func AgeColumn() metav1.TableColumnDefinition {
	return Column("Age", metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"])
}

// Column is one of text.
func Column(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description}
}

// IntColumn is one of whole numbers.
func IntColumn(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "integer", Description: description}
}

// Wide makes a column one that only `-o wide` shows.
func Wide(c metav1.TableColumnDefinition) metav1.TableColumnDefinition {
	c.Priority = 1
	return c
}

// Age is the time from t to now as people read it: "5m", "3d4h"; "<unknown>" for no time.
func Age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// NameAndAge are the columns of kinds with nothing else to show; NameAndAgeCells their cells.
func NameAndAge() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{NameColumn(), AgeColumn()}
}

// NameAndAgeCells are the cells of NameAndAge.
func NameAndAgeCells[T metav1.Object](obj T, now time.Time) []any {
	return []any{obj.GetName(), Age(obj.GetCreationTimestamp(), now)}
}

// NameAndCreated are the columns of kinds that kubectl has no printing of its own for.
func NameAndCreated() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		NameColumn(),
		{Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
	}
}

// NameAndCreatedCells are the cells of NameAndCreated.
func NameAndCreatedCells[T metav1.Object](obj T, _ time.Time) []any {
	return []any{obj.GetName(), obj.GetCreationTimestamp().Time.UTC().Format(time.RFC3339)}
}

// OwnerText names an owner as "statefulset.apps/web".
func OwnerText(o *metav1.OwnerReference) string {
	group, _, ok := strings.Cut(o.APIVersion, "/")
	kind := strings.ToLower(o.Kind)
	if ok {
		kind += "." + group
	}
	return kind + "/" + o.Name
}
