import Glibc
import Synchronization

/// strerror(3) of `code`.
func errorText(_ code: Int32) -> String {
  String(cString: strerror(code))
}

/// Runs `call` again while it fails with EINTR.
func restarting<Result: SignedInteger>(_ call: () -> Result) -> Result {
  while true {
    let result = call()
    if result != -1 || errno != EINTR { return result }
  }
}

/// Held while a descriptor is made that is not yet close-on-exec, and while a process is started: a child that inherits
/// a pipe or a socket would keep it open and hide its end. (Glibc's module has neither `pipe2` nor `accept4`.) So it is
/// while a file is open for writing: the child has that until its exec, and a worker takes the file for half written.
let descriptorCreation = Mutex(())

/// Runs `create` and marks the descriptors it yields close-on-exec before any process can start.
func privately<Failure>(_ create: () throws(Failure) -> [Int32]) throws(Failure) -> [Int32] {
  try descriptorCreation.withLock { _ throws(Failure) in
    let descriptors = try create()
    for descriptor in descriptors where descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    return descriptors
  }
}

/// Does `action`, which has a file open for writing, while no process is started.
package func whileNothingStarts<Result, Failure>(_ action: () throws(Failure) -> Result) throws(Failure) -> Result {
  try descriptorCreation.withLock { _ throws(Failure) in try action() }
}

/// A pipe that no child inherits.
func makePipe() throws(TestSupportError) -> (read: Int32, write: Int32) {
  let ends = try privately { () throws(TestSupportError) in
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw TestSupportError("pipe", "", errno: errno) }
    return ends
  }
  return (ends[0], ends[1])
}

/// Starts a thread that nobody waits for. Tests that block on sockets and processes must not occupy the few threads of
/// Swift's own pool.
func startThread(_ body: @escaping @Sendable () -> Void) throws(TestSupportError) {
  pthread_detach(try startJoinableThread(body))
}

/// Waits for what blocks, on a thread of its own.
package func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
  try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Result, any Error>) in
    do {
      try startThread { continuation.resume(with: Swift.Result { try body() }) }
    } catch {
      continuation.resume(throwing: error)
    }
  }
}

/// As ``startThread(_:)``, but the caller has to join it.
func startJoinableThread(_ body: @escaping @Sendable () -> Void) throws(TestSupportError) -> pthread_t {
  final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }
  var thread = pthread_t()
  let argument = Unmanaged.passRetained(Body(body))
  let code = pthread_create(
    &thread, nil,
    { argument in
      guard let argument else { return nil }
      Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
      return nil
    }, argument.toOpaque())
  guard code == 0 else {
    argument.release()
    throw TestSupportError("pthread_create", "", errno: code)
  }
  return thread
}
