import Glibc
import Synchronization

/// Processes that run a test program again and again without starting it anew: each serves one run at a time, and is
/// free for the next one. See `ForkServer` of the crash matrix's rig for what they are asked and answer.
package final class ForkServers: Sendable {
  private let program: [String]
  private let free = Mutex<[ForkServerProcess]>([])

  /// - Parameter program: the server's path and arguments.
  package init(_ program: [String]) { self.program = program }

  /// Runs the program with `arguments`, which have no TAB and no newline, to its end. What it writes to standard output
  /// and standard error is both in `errors`, as it came.
  /// - Parameter outputPath: a file that the caller owns, for what the program writes.
  package func run(_ arguments: [String], outputPath: String) async throws -> CommandResult {
    try await onThread { [self] in try runBlocking(arguments, outputPath) }
  }

  /// A server that fails is not asked again.
  private func runBlocking(_ arguments: [String], _ outputPath: String) throws -> CommandResult {
    let server = try free.withLock { $0.popLast() } ?? ForkServerProcess(program)
    let start = ContinuousClock.now
    let status = try server.run([outputPath] + arguments)
    free.withLock { $0.append(server) }
    let text = String(decoding: try readFile(outputPath), as: UTF8.self)
    return CommandResult(status: status, output: "", errors: text, duration: .now - start)
  }
}

private final class ForkServerProcess: Sendable {
  private let processID: pid_t
  private let requests: Int32
  private let replies: Int32

  init(_ program: [String]) throws {
    let input = try makePipe()
    let output = try makePipe()
    defer {
      close(input.read)
      close(output.write)
    }
    (requests, replies) = (input.write, output.read)
    processID = try spawn(
      program, environment: testEnvironment, input: input.read, output: output.write, errors: output.write)
    Leftovers.add(processID)
  }

  deinit {
    // Its group: a run that hangs is in it.
    kill(-processID, SIGKILL)
    var status: Int32 = 0
    _ = restarting { waitpid(processID, &status, 0) }
    Leftovers.remove(processID)
    close(requests)
    close(replies)
  }

  func run(_ fields: [String]) throws -> CommandResult.Status {
    let request = Array("\(fields.joined(separator: "\t"))\n".utf8)
    // As much as a pipe takes at once (pipe(7)).
    precondition(request.count <= 4096 && !fields.contains { $0.contains("\t") || $0.contains("\n") })
    guard restarting({ write(requests, request, request.count) }) == request.count else {
      throw TestSupportError("write", "\(fields)", errno: errno)
    }
    let reply = try readReply(fields)
    let parts = reply.split(separator: " ")
    guard parts.count == 2, let number = Int32(parts[1]), parts[0] == "exited" || parts[0] == "killed" else {
      throw TestSupportError("\(fields): the fork server says: \(reply)")
    }
    return parts[0] == "exited" ? .exited(number) : .killed(signal: number)
  }

  private func readReply(_ fields: [String]) throws -> String {
    let deadline = ContinuousClock.now + untilItHangs * patience
    var reply: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 256)
    while reply.last != UInt8(ascii: "\n") {
      guard ContinuousClock.now < deadline else { throw TestSupportError("\(fields) ran for over \(untilItHangs)") }
      var polled = pollfd(fd: replies, events: Int16(POLLIN), revents: 0)
      guard restarting({ poll(&polled, 1, 1000) }) > 0 else { continue }
      let count = restarting { read(replies, &buffer, buffer.count) }
      guard count > 0 else { throw TestSupportError("\(fields): the fork server ended: \(latin1(reply))") }
      reply += buffer.prefix(count)
    }
    return String(decoding: reply.dropLast(), as: UTF8.self)
  }
}
