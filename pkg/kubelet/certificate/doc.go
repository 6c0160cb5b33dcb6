// Package certificate keeps the kubelet's certificates: it asks the API server for them by CertificateSigningRequests,
// keeps them in files as upstream does, and renews each in good time. A Manager keeps one certificate; Bootstrap gets
// the first client certificate of a node that has nothing but a bootstrap token.
//
// client-go's util/certificate does the same. It is not used because it stands on the generated clientset, which makes
// a kubelet that does nothing 9 MB larger.
//
// The contract: https://kubernetes.io/docs/reference/access-authn-authz/kubelet-tls-bootstrapping/.
package certificate
