// Package cli is what every kubectl verb stands on: streams, the factory of clients, the global flags, and how errors
// are shown.
//
// A verb is a package pkg/kubectl/<verb> with
//
//	func NewCommand(f *cli.Factory, streams cli.IOStreams) *cobra.Command
//
// whose Options has Complete(f, cmd, args), Validate() and Run(ctx); its cobra RunE is cli.RunE(f, options) or a call
// of cli.Run. Complete reads arguments and flags, refuses arguments that the verb does not take (UsageErrorf), and asks
// the factory for clients. Validate judges without any request, Run does the work and writes to the injected streams.
//
// Objects come from Factory.Resources and resource.Request (files, TYPE NAME arguments, selectors). A printers.Printer
// shows objects, a printers.Aligner a table of the verb's own. A verb returns its errors: how they look and the exit
// code are decided once, in this package. Its tests run it with writetest.Run, whether it writes or only reads.
// pkg/kubectl/commands.go lists the verbs; they do not register themselves.
package cli
