package expression

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// Bool is the type of conditions.
func Bool() *cel.Type { return cel.BoolType }

// String is the type of messages.
func String() *cel.Type { return cel.StringType }

// Null is the type of an audit annotation that is left out.
func Null() *cel.Type { return cel.NullType }

// Any is the type of what may be of any type.
func Any() *cel.Type { return cel.AnyType }

// Object is the type of apply configurations.
func Object() *cel.Type { return types.NewObjectType(mutation.ObjectTypeName) }

// Patch is the type of JSON patches.
func Patch() *cel.Type { return types.NewListType(types.NewObjectType(mutation.JSONPatchTypeName)) }

// unbounded is, for the estimate of costs, what an unbounded text or list of a request can be: as long as the request
// itself.
const unbounded = -1

func fields(of map[string]*apiservercel.DeclType) map[string]*apiservercel.DeclField {
	out := make(map[string]*apiservercel.DeclField, len(of))
	for name, t := range of {
		out[name] = apiservercel.NewDeclField(name, t, true, nil, nil)
	}
	return out
}

// requestType is the type of "request": admission.k8s.io/v1 AdmissionRequest without uid, object and oldObject.
func requestType() *apiservercel.DeclType {
	text := apiservercel.StringType
	gvk := apiservercel.NewObjectType("kubernetes.GroupVersionKind",
		fields(map[string]*apiservercel.DeclType{"group": text, "version": text, "kind": text}))
	gvr := apiservercel.NewObjectType("kubernetes.GroupVersionResource",
		fields(map[string]*apiservercel.DeclType{"group": text, "version": text, "resource": text}))
	return apiservercel.NewObjectType("kubernetes.AdmissionRequest", fields(map[string]*apiservercel.DeclType{
		"kind": gvk, "resource": gvr, "subResource": text, "requestKind": gvk, "requestResource": gvr,
		"requestSubResource": text,
		"name":               text, "namespace": text, "operation": text, "userInfo": userType(),
		"dryRun":  apiservercel.BoolType,
		"options": apiservercel.DynType,
	}))
}

// userType is the type of "user" and of "request.userInfo": authentication.k8s.io/v1 UserInfo.
func userType() *apiservercel.DeclType {
	text := apiservercel.StringType
	return apiservercel.NewObjectType("kubernetes.UserInfo", fields(map[string]*apiservercel.DeclType{
		"username": text, "uid": text, "groups": apiservercel.NewListType(text, unbounded),
		"extra": apiservercel.NewMapType(text, apiservercel.NewListType(text, unbounded), unbounded),
	}))
}

// reviewType is the type of "request" in an authorization configuration: authorization.k8s.io/v1
// SubjectAccessReviewSpec.
func reviewType() *apiservercel.DeclType {
	text := apiservercel.StringType
	texts := apiservercel.NewListType(text, unbounded)
	selector := func(of string) *apiservercel.DeclType {
		requirement := apiservercel.NewObjectType("kubernetes."+of+"SelectorRequirement",
			fields(map[string]*apiservercel.DeclType{"key": text, "operator": text, "values": texts}))
		return apiservercel.NewObjectType("kubernetes."+of+"SelectorAttributes",
			fields(map[string]*apiservercel.DeclType{"rawSelector": text,
				"requirements": apiservercel.NewListType(requirement, unbounded)}))
	}
	resource := apiservercel.NewObjectType("kubernetes.ResourceAttributes", fields(map[string]*apiservercel.DeclType{
		"namespace": text, "verb": text, "group": text, "version": text, "resource": text, "subresource": text,
		"name": text, "fieldSelector": selector("Field"), "labelSelector": selector("Label")}))
	path := apiservercel.NewObjectType("kubernetes.NonResourceAttributes",
		fields(map[string]*apiservercel.DeclType{"path": text, "verb": text}))
	return apiservercel.NewObjectType("kubernetes.SubjectAccessReviewSpec", fields(map[string]*apiservercel.DeclType{
		"resourceAttributes": resource, "nonResourceAttributes": path, "user": text, "groups": texts,
		"extra": apiservercel.NewMapType(text, texts, unbounded), "uid": text}))
}

// namespaceType is the type of "namespaceObject": what of a Namespace does not change with every write.
func namespaceType() *apiservercel.DeclType {
	text := apiservercel.StringType
	texts := apiservercel.NewMapType(text, text, unbounded)
	metadata := apiservercel.NewObjectType("kubernetes.NamespaceMetadata", fields(map[string]*apiservercel.DeclType{
		"name": text, "generateName": text, "namespace": text, "labels": texts, "annotations": texts, "UID": text,
		"creationTimestamp": apiservercel.TimestampType, "deletionGracePeriodSeconds": apiservercel.IntType,
		"deletionTimestamp": apiservercel.TimestampType,
		"generation":        apiservercel.IntType, "resourceVersion": text,
		"finalizers": apiservercel.NewListType(text, unbounded),
	}))
	spec := apiservercel.NewObjectType("kubernetes.NamespaceSpec",
		fields(map[string]*apiservercel.DeclType{"finalizers": apiservercel.NewListType(text, unbounded)}))
	status := apiservercel.NewObjectType("kubernetes.NamespaceStatus",
		fields(map[string]*apiservercel.DeclType{"phase": text}))
	return apiservercel.NewObjectType("kubernetes.Namespace",
		fields(map[string]*apiservercel.DeclType{"metadata": metadata, "spec": spec, "status": status}))
}

// variablesType is the type of "variables", without fields.
func variablesType() *apiservercel.DeclType {
	return apiservercel.NewObjectType("kubernetes.variables", map[string]*apiservercel.DeclField{})
}

// declared is how a variable of a type is declared, which has a name of its own.
func declared(name string, kind *cel.Type) *apiservercel.DeclType {
	return apiservercel.NewSimpleTypeWithMinSize(name, kind, nil, 0)
}
