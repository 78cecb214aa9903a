import Glibc

/// The client closed the connection, or the server is stopping: ends a script quietly.
package struct PeerGone: Error {}

/// Writes whatever a script likes to one connection. Used only on that connection's thread.
package final class Reply {
  private let socket: Int32
  private let stopping: Int32
  private(set) var isClosed = false
  /// All bytes written so far on this connection.
  private(set) var bytesSent = 0

  /// `socket` is non-blocking and stays the caller's to close; `stopping` becomes readable when the server stops.
  init(socket: Int32, stopping: Int32) {
    self.socket = socket
    self.stopping = stopping
  }

  /// Sends bytes as they are.
  package func send(_ bytes: some Collection<UInt8>) throws(PeerGone) {
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { buffer in
        restarting { Glibc.send(socket, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL)) }
      }
      if count > 0 {
        rest = rest.dropFirst(count)
        bytesSent += count
      } else if errno == EAGAIN {
        try wait(for: POLLOUT)
      } else {
        isClosed = true
        throw PeerGone()
      }
    }
  }

  /// Sends text, one byte a scalar (see `latin1(_:)`).
  package func send(_ text: String) throws(PeerGone) {
    try send(latin1Bytes(text))
  }

  /// Sends a status line and fields, each ended by CR LF, and the empty line.
  package func head(_ status: String, _ fields: [String] = [], version: String = "HTTP/1.1") throws(PeerGone) {
    try send((["\(version) \(status)"] + fields).joined(separator: "\r\n") + "\r\n\r\n")
  }

  /// A whole response with the Content-Length of `body`.
  package func respond(_ status: String, _ fields: [String] = [], body: some Collection<UInt8>) throws(PeerGone) {
    try head(status, fields + ["Content-Length: \(body.count)"])
    try send(body)
  }

  /// Ends the sending direction (FIN), then waits until the client has closed, too.
  package func finish() throws(PeerGone) {
    isClosed = true
    shutdown(socket, Int32(SHUT_WR))
    try waitForClient()
  }

  /// Resets the connection (RST), but not before the client's kernel has all that was sent.
  package func reset() throws(PeerGone) {
    var unsent: Int32 = 1
    while unsent > 0 {
      guard ioctl(socket, UInt(TIOCOUTQ), &unsent) == 0 else { throw PeerGone() }
      if unsent > 0 { try pause(milliseconds: 1) }
    }
    var linger = Glibc.linger(l_onoff: 1, l_linger: 0)
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
    isClosed = true
  }

  /// Sends nothing until the gate opens; throws `PeerGone` if the client closes or the server stops first.
  package func stall(until gate: Gate? = nil) throws(PeerGone) {
    try wait(for: 0, orFor: gate?.descriptor)
  }

  /// Sends `bytes` in pieces with pauses between them.
  package func drip(_ bytes: some Collection<UInt8>, piece: Int, milliseconds: Int32) throws(PeerGone) {
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
      try send(rest.prefix(piece))
      rest = rest.dropFirst(piece)
      if !rest.isEmpty { try pause(milliseconds: milliseconds) }
    }
  }

  /// Lets time pass: for scripts whose subject is time. Ends at once if the client goes.
  package func pause(milliseconds: Int32) throws(PeerGone) {
    try wait(for: 0, milliseconds: milliseconds)
  }

  /// Reads on until the client closes; closing with unread input would turn the FIN into a reset.
  private func waitForClient() throws(PeerGone) {
    while try receive() != nil {}
  }

  /// What the client sent; nil at its end of the stream.
  func receive() throws(PeerGone) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 16 * 1024)
    while true {
      let count = buffer.withUnsafeMutableBytes { buffer in
        restarting { recv(socket, buffer.baseAddress, buffer.count, 0) }
      }
      if count > 0 { return Array(buffer.prefix(count)) }
      if count == 0 { return nil }
      guard errno == EAGAIN else { throw PeerGone() }
      try wait(for: POLLIN)
    }
  }

  /// Waits for events of the socket, for `gate` or for the time to pass.
  private func wait(
    for events: Int32, orFor gate: Int32? = nil, milliseconds: Int32 = -1
  ) throws(PeerGone) {
    let hangUp = Int16(POLLHUP | POLLERR)
    let halfClosed: Int16 = 0x2000  // POLLRDHUP of poll(2), which Glibc's module leaves out
    var polled = [
      pollfd(fd: socket, events: Int16(events) | halfClosed, revents: 0),
      pollfd(fd: stopping, events: Int16(POLLIN), revents: 0),
      pollfd(fd: gate ?? -1, events: Int16(POLLIN), revents: 0),
    ]
    _ = restarting { poll(&polled, 3, milliseconds) }
    if polled[1].revents != 0 { throw PeerGone() }
    // With events to wait for, a half-closed client still shows as readable: `receive` reports its end.
    let gone = events == 0 ? hangUp | halfClosed : hangUp
    if polled[0].revents & gone != 0, events & POLLIN == 0 { throw PeerGone() }
  }
}
