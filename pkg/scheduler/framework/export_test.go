package framework

// FullPod is for the tests that need plug-ins and so stand outside of the package.
var FullPod = fullPod
