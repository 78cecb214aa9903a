internal import Spool

/// Runs a call that may block for long (fsync, reading a large file, waiting for a program) on another thread, so that
/// no transfer waits for it.
///
/// Not on the global executor: libdispatch keeps its threads when the work is done, and writes a line to syslog for
/// each thread that may not get the priority it wants, which only root may.
func runBlocking<Value: Sendable, Failure: Error>(
  _ body: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
  let result = await withCheckedContinuation { continuation in
    Host.current.runOnThread { continuation.resume(returning: Result(catching: body)) }
  }
  return try result.get()
}
