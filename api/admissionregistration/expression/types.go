package expression

import (
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// maxText bounds, for the estimate of costs, what an unbounded text or list of a request can be: as long as the request itself.
const unbounded = -1

// declared are the types of the variables that have fields.
func declared() []*apiservercel.DeclType {
	return []*apiservercel.DeclType{requestType(), namespaceType()}
}

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
	gvk := apiservercel.NewObjectType("kubernetes.GroupVersionKind", fields(map[string]*apiservercel.DeclType{"group": text, "version": text, "kind": text}))
	gvr := apiservercel.NewObjectType("kubernetes.GroupVersionResource", fields(map[string]*apiservercel.DeclType{"group": text, "version": text, "resource": text}))
	user := apiservercel.NewObjectType("kubernetes.UserInfo", fields(map[string]*apiservercel.DeclType{
		"username": text, "uid": text, "groups": apiservercel.NewListType(text, unbounded),
		"extra": apiservercel.NewMapType(text, apiservercel.NewListType(text, unbounded), unbounded),
	}))
	return apiservercel.NewObjectType("kubernetes.AdmissionRequest", fields(map[string]*apiservercel.DeclType{
		"kind": gvk, "resource": gvr, "subResource": text, "requestKind": gvk, "requestResource": gvr, "requestSubResource": text,
		"name": text, "namespace": text, "operation": text, "userInfo": user, "dryRun": apiservercel.BoolType, "options": apiservercel.DynType,
	}))
}

// namespaceType is the type of "namespaceObject": what of a Namespace does not change with every write.
func namespaceType() *apiservercel.DeclType {
	text := apiservercel.StringType
	texts := apiservercel.NewMapType(text, text, unbounded)
	metadata := apiservercel.NewObjectType("kubernetes.NamespaceMetadata", fields(map[string]*apiservercel.DeclType{
		"name": text, "generateName": text, "namespace": text, "labels": texts, "annotations": texts, "UID": text,
		"creationTimestamp": apiservercel.TimestampType, "deletionGracePeriodSeconds": apiservercel.IntType, "deletionTimestamp": apiservercel.TimestampType,
		"generation": apiservercel.IntType, "resourceVersion": text, "finalizers": apiservercel.NewListType(text, unbounded),
	}))
	spec := apiservercel.NewObjectType("kubernetes.NamespaceSpec", fields(map[string]*apiservercel.DeclType{"finalizers": apiservercel.NewListType(text, unbounded)}))
	status := apiservercel.NewObjectType("kubernetes.NamespaceStatus", fields(map[string]*apiservercel.DeclType{"phase": text}))
	return apiservercel.NewObjectType("kubernetes.Namespace", fields(map[string]*apiservercel.DeclType{"metadata": metadata, "spec": spec, "status": status}))
}
