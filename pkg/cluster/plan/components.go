package plan

// PodBridge is the bridge of a node's pods. bonsai-network configures the CNI plug-ins to make it.
const PodBridge = "cni0"

// StepsFlag makes a component log its steps for each object (package trace). On one machine that costs little, and the
// log then explains what happened.
const StepsFlag = "--v=2"
