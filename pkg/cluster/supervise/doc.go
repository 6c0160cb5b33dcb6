// Package supervise keeps processes running and says how they are.
//
// A Supervisor starts programs again when they end, with a back-off, and dies with all of them: nothing that it starts
// outlives it. Each program has a log of bounded size, whose last lines say why it ended. Other processes ask a
// supervisor for the state of its processes over its control socket.
package supervise
