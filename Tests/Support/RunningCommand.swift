package import Glibc
import Synchronization

/// How a process ended and what it wrote.
package struct CommandResult: Sendable, CustomStringConvertible {
  package enum Status: Sendable, Equatable {
    case exited(Int32)
    case killed(signal: Int32)
  }

  package let status: Status
  package let output: String
  package let errors: String
  /// Wall clock, from the start to the end of the process.
  package let duration: Duration

  /// nil where a signal ended it.
  package var exitStatus: Int32? {
    if case .exited(let status) = status { status } else { nil }
  }

  package var description: String {
    "\(status) after \(duration)\n--- stdout\n\(output)\n--- stderr\n\(errors)"
  }
}

/// A process that a test started, in a process group of its own. It inherits standard input from /dev/null
/// and no other descriptor.
package final class RunningCommand: Sendable {
  package let processID: pid_t
  private let state = Mutex(State())

  private struct State {
    var result: Result<CommandResult, TestSupportError>?
    var isReaped = false
    var waiters: [CheckedContinuation<CommandResult, any Error>] = []
  }

  /// Starts `argv[0]` (a path). After `timeout` it is killed and `result()` throws what it had written.
  package init(
    _ argv: [String], environment: [String: String] = testEnvironment, directory: String? = nil,
    timeout: Duration = untilItHangs
  ) throws {
    let output = try makePipe()
    let errors = try makePipe()
    defer {
      close(output.write)
      close(errors.write)
    }
    processID = try spawn(
      argv, environment: environment, directory: directory, output: output.write, errors: errors.write)
    Leftovers.add(processID)
    let start = ContinuousClock.now
    try startThread { [self] in
      var collected: [[UInt8]] = [[], []]
      let inTime = collect([output.read, errors.read], into: &collected, until: start + timeout * patience)
      if !inTime { kill(-processID, SIGKILL) }
      let status = reap()
      let result = CommandResult(
        status: status, output: String(decoding: collected[0], as: UTF8.self),
        errors: String(decoding: collected[1], as: UTF8.self), duration: .now - start)
      finish(inTime ? .success(result) : .failure(TestSupportError("\(argv) ran for over \(timeout): \(result)")))
    }
  }

  /// Sends a signal, unless the process has ended.
  package func send(signal: Int32) {
    state.withLock { state in
      if !state.isReaped { kill(processID, signal) }
    }
  }

  /// Sends a signal, and waits for the end.
  @discardableResult
  package func stop(_ signal: Int32 = SIGTERM) async throws -> CommandResult {
    send(signal: signal)
    return try await result()
  }

  /// Waits for the process to end and its output to be closed.
  package func result() async throws -> CommandResult {
    try await withCheckedThrowingContinuation { continuation in
      let result = state.withLock { state -> Result<CommandResult, TestSupportError>? in
        if state.result == nil { state.waiters.append(continuation) }
        return state.result
      }
      if let result { continuation.resume(with: result) }
    }
  }

  /// Whether it has ended.
  package var isFinished: Bool {
    state.withLock { $0.result != nil }
  }

  private func finish(_ result: Result<CommandResult, TestSupportError>) {
    let waiters = state.withLock { state in
      state.result = result
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume(with: result) }
  }

  /// Waits with the process still a zombie, so that `send(signal:)` can never reach a process that got its number next.
  private func reap() -> CommandResult.Status {
    var info = siginfo_t()
    _ = restarting { waitid(P_PID, id_t(processID), &info, WEXITED | WNOWAIT) }
    return state.withLock { state in
      var status: Int32 = 0
      _ = restarting { waitpid(processID, &status, 0) }
      state.isReaped = true
      Leftovers.remove(processID)
      let signal = status & 0x7F
      return signal == 0 ? .exited((status >> 8) & 0xFF) : .killed(signal: signal)
    }
  }
}

/// Runs a command to its end.
package func run(
  _ argv: [String], environment: [String: String] = testEnvironment, directory: String? = nil,
  timeout: Duration = untilItHangs
) async throws -> CommandResult {
  try await RunningCommand(argv, environment: environment, directory: directory, timeout: timeout).result()
}

/// As `run`, but throws unless the command exits with 0: for the tests' own tools.
@discardableResult
package func runTool(_ argv: [String], directory: String? = nil) async throws -> CommandResult {
  let result = try await run(argv, directory: directory)
  guard result.status == .exited(0) else { throw TestSupportError("\(argv): \(result)") }
  return result
}

/// What commands get by default: no proxy settings, no locale, no home of the one who runs the tests.
package let testEnvironment = [
  "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
].merging(sanitizerOptions) { given, _ in given }

/// What `scripts/sanitize` says to ThreadSanitizer holds for what the tests start, too.
private let sanitizerOptions = getenv("TSAN_OPTIONS").map { ["TSAN_OPTIONS": String(cString: $0)] } ?? [:]

/// Reads all descriptors to their ends and closes them. Returns false when the deadline comes first.
private func collect(
  _ descriptors: [Int32], into collected: inout [[UInt8]], until deadline: ContinuousClock.Instant
) -> Bool {
  var polled = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
  defer { for descriptor in descriptors { close(descriptor) } }
  var buffer = [UInt8](repeating: 0, count: 64 * 1024)
  while polled.contains(where: { $0.fd >= 0 }) {
    let left = deadline - .now
    guard left > .zero else { return false }
    _ = restarting { poll(&polled, nfds_t(polled.count), Int32(left.components.seconds * 1000) + 100) }
    for index in polled.indices where polled[index].revents != 0 {
      let count = restarting { read(polled[index].fd, &buffer, buffer.count) }
      if count > 0 { collected[index] += buffer.prefix(count) } else { polled[index].fd = -1 }
    }
  }
  return true
}
