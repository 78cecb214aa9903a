import Glibc
import Synchronization

/// An HTTP/1.1 server on 127.0.0.1 that answers each request with a script, so that it can lie in every way
/// that bytes on a socket allow. One thread a connection; requests have no body.
package final class ScriptedServer: Sendable {
  /// Answers one request. When it returns with the connection open, the next request is read from it, unless the
  /// client wants no more than one.
  package typealias Script = @Sendable (ServerRequest, Reply) throws -> Void

  package let port: UInt16
  private let core: Core

  /// Listens on a free port at once.
  package init(_ script: @escaping Script) throws {
    let listener = try listenOnLoopback()
    port = try boundPort(listener)
    core = Core(listener: listener, stopping: try Gate(), script: script)
    let core = core
    let acceptor = try startJoinableThread { core.accept() }
    core.state.withLock { $0.threads.append(acceptor) }
  }

  deinit {
    stop()
  }

  /// `http://127.0.0.1:PORT` and `path`.
  package func url(_ path: String) -> String {
    "http://127.0.0.1:\(port)\(path)"
  }

  /// How many connections were made to it so far.
  package var connections: Int { core.state.withLock { $0.connections } }

  /// All requests so far, in order of arrival.
  package var requests: [ServerRequest] {
    core.state.withLock { $0.requests }
  }

  /// The requests for one target.
  package func requests(for target: String) -> [ServerRequest] {
    requests.filter { $0.target == target }
  }

  /// What clients sent that was no HTTP request, and errors that scripts threw.
  package var problems: [String] {
    core.state.withLock { $0.problems }
  }

  /// Waits until it has read all that clients sent that have ended, and their connections are closed: what a killed
  /// client sent may still be in the kernel, and would pass for its successor's.
  package func forgetEndedClients() async throws {
    // Connections are accepted in their order: when the server has closed this one, it has accepted those before.
    try await onThread { [port] in
      let last = try connectToLoopback(port)
      defer { close(last) }
      shutdown(last, Int32(SHUT_WR))
      var byte: UInt8 = 0
      _ = restarting { read(last, &byte, 1) }
    }
    try await waitUntil("the connections of ended clients are closed") { [core] in
      core.state.withLock { $0.openConnections == 0 }
    }
  }

  /// Closes the listening socket and ends all scripts; returns when their threads have ended.
  package func stop() {
    core.stopping.open()
    while let thread = core.state.withLock({ $0.threads.popLast() }) {
      pthread_join(thread, nil)
    }
  }
}

/// What the threads share; they hold this and not the server, so that dropping the server stops them.
private final class Core: Sendable {
  struct State {
    var requests: [ServerRequest] = []
    var countByTarget: [String: Int] = [:]
    var connections = 0
    var openConnections = 0
    var problems: [String] = []
    var threads: [pthread_t] = []
    /// Those of `threads` that need only be joined: until then, each keeps its stack.
    var endedThreads: [pthread_t] = []
  }

  let listener: Int32
  let stopping: Gate
  let script: ScriptedServer.Script
  let state = Mutex(State())

  init(listener: Int32, stopping: Gate, script: @escaping ScriptedServer.Script) {
    self.listener = listener
    self.stopping = stopping
    self.script = script
  }

  func accept() {
    defer { close(listener) }
    while true {
      var polled = [
        pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
        pollfd(fd: stopping.descriptor, events: Int16(POLLIN), revents: 0),
      ]
      _ = restarting { poll(&polled, 2, -1) }
      if stopping.isOpen { return }
      let socket = acceptConnection(listener)
      guard socket >= 0 else { continue }
      let number = state.withLock { state in
        state.connections += 1
        state.openConnections += 1
        return state.connections
      }
      do throws(TestSupportError) {
        joinEndedThreads()
        let thread = try startJoinableThread {
          self.serve(socket, connection: number)
          self.state.withLock { state in
            state.openConnections -= 1
            state.endedThreads.append(pthread_self())
          }
        }
        state.withLock { $0.threads.append(thread) }
      } catch {
        close(socket)
        state.withLock { state in
          state.openConnections -= 1
          state.problems.append("\(error)")
        }
      }
    }
  }

  private func joinEndedThreads() {
    let ended = state.withLock { state in
      let ended = state.endedThreads
      state.endedThreads = []
      state.threads.removeAll { ended.contains($0) }
      return ended
    }
    for thread in ended { pthread_join(thread, nil) }
  }

  private func serve(_ socket: Int32, connection: Int) {
    defer { close(socket) }
    let reply = Reply(socket: socket, stopping: stopping.descriptor)
    var input: [UInt8] = []
    do {
      while !reply.isClosed {
        guard let head = try nextHead(&input, from: reply) else { return }
        let request = state.withLock { state in
          let request = ServerRequest(head: head, connection: connection) { target in
            state.countByTarget[target, default: 0] += 1
            return state.countByTarget[target, default: 0]
          }
          if let request { state.requests.append(request) }
          return request
        }
        guard let request else {
          state.withLock { $0.problems.append("no HTTP request: \(latin1(head))") }
          return
        }
        try script(request, reply)
        if request.endsConnection, !reply.isClosed { try reply.finish() }
      }
    } catch is PeerGone {
      return
    } catch {
      state.withLock { $0.problems.append("\(error)") }
    }
  }

  /// The bytes up to and with the next empty line; nil at the end of the stream.
  private func nextHead(_ input: inout [UInt8], from reply: Reply) throws(PeerGone) -> [UInt8]? {
    let emptyLine: [UInt8] = [13, 10, 13, 10]
    while true {
      if let end = input.firstRange(of: emptyLine)?.upperBound {
        defer { input.removeFirst(end) }
        return Array(input[..<end])
      }
      guard let more = try reply.receive() else { return nil }
      input += more
    }
  }
}
