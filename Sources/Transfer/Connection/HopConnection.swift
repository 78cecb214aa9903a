internal import CCurl
internal import Glibc

/// The connection that a hop's request goes over: whether it may be used, and what its TLS messages show. Its identity
/// is the exchange's in the table of sockets.
final class HopConnection {
  /// What becomes of a request that libcurl is about to send.
  enum Decision {
    case goesOut
    /// Once more, over a new connection.
    case startsAgain
    /// Bytes came on a fresh connection before any request.
    case isUnasked
    /// The connection broke, and the request cannot be sent once more.
    case isCut
  }

  let sockets: OpenSockets
  /// The next request needs a new connection: the one at hand had unread bytes, or was left in the middle of an answer.
  private(set) var mustBeFresh = false
  /// libcurl was about to send this hop's request a second time.
  private var wasRepeated = false
  /// The connection that this hop's request went to; not over plain HTTP.
  private var entered: OpenSockets.Connection?
  /// The peer announced the end of its data (close_notify).
  private(set) var sawCloseNotify = false

  init(_ sockets: OpenSockets) { self.sockets = sockets }

  // MARK: The request

  /// The connection is ready for the request of a hop (CURLOPT_PREREQFUNCTION(3)), or for the one that brings a login.
  func send(over connection: OpenSockets.Connection, _ scheme: Scheme) -> Decision {
    switch scheme {
    case .http:
      guard sockets.hasUnreadBytes(connection) else { break }
      if mustBeFresh { return .isUnasked }
      mustBeFresh = true
      return .startsAgain
    // Over TLS session tickets may be waiting, and look like unread bytes.
    case .https, .sftp, .ftp, .ftps: entered = connection
    }
    sawCloseNotify = false
    return .goesOut
  }

  /// libcurl is about to repeat a request that was sent: it does so if a reused connection turns out to be dead. The
  /// second answer would be appended to the first. So the hop begins again, once, on a connection of its own.
  func sendAgain(hasAnswer: Bool) -> Decision {
    defer { (wasRepeated, mustBeFresh) = (true, true) }
    return wasRepeated || hasAnswer ? .isCut : .startsAgain
  }

  func abandonAnswer() { mustBeFresh = true }

  func beginNextURL() { wasRepeated = false }

  func open(_ address: curl_sockaddr) -> curl_socket_t { sockets.open(address, for: self) }

  /// Ends the connection of this hop. Over SSH a silent server would keep libcurl waiting for its answer to each
  /// goodbye; over FTP a late reply would be taken for that to the next command.
  func cut() { sockets.cut(entered, of: self) }

  func leave() {
    noteAnswer()
    sockets.forget(self)
    entered = nil
  }

  // MARK: What it tells

  func noteAnswer() { if let entered { sockets.noteAnswer(on: entered) } }

  /// A TLS message that is not data, decrypted (CURLOPT_DEBUGFUNCTION(3), CURLINFO_SSL_DATA_IN).
  ///
  /// libcurl 7.88 reports a TLS connection that was closed without close_notify as a good end: its BIO does not report
  /// the end of file to OpenSSL. So the alert is looked for here. It is the only message of two bytes, level and
  /// description; the description is 0 (RFC 8446, 6.1).
  /// - Parameter isPaused: libcurl keeps what comes for later.
  func receive(tlsMessage: UnsafeRawBufferPointer, isPaused: Bool) {
    if let entered, !isPaused { sockets.noteRecord(on: entered) }
    if tlsMessage.count == 2, tlsMessage[1] == 0 { sawCloseNotify = true }
  }
}

/// The sockets that libcurl has open, so that a connection can be checked before it is used again.
///
/// libcurl 7.88 takes whatever comes on a reused connection for the answer to its latest request. What a server sent
/// beyond the previous body, or unasked, would become the next job's data.
final class OpenSockets {
  private var descriptors: Set<Int32> = []
  /// The open socket of each connection that has had a request. Its ports do not change before it is closed.
  private var known: [Connection: Int32] = [:]

  /// Who opened a socket for itself, as long as it uses it.
  private var openers: [Int32: ObjectIdentifier] = [:]

  /// Why no two sockets can be opened now, which a resolver needs with its files: errno(3); 0 if they can.
  static var lack: Int32 {
    let pair = (0..<2).map { _ in ccurl_socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0) }
    let reason = errno
    for descriptor in pair where descriptor >= 0 { _ = Glibc.close(descriptor) }
    return pair.contains { $0 < 0 } ? reason : 0
  }

  func open(_ address: curl_sockaddr, for opener: AnyObject) -> curl_socket_t {
    let descriptor = ccurl_socket(address.family, address.socktype, address.protocol)
    if descriptor >= 0 {
      descriptors.insert(descriptor)
      openers[descriptor] = ObjectIdentifier(opener)
    }
    return descriptor
  }

  func cut(_ connection: Connection?, of user: AnyObject) {
    for descriptor in descriptors {
      let isItsEnd = connection.map { isEnd(descriptor, of: $0) } ?? false
      if isItsEnd || openers[descriptor] == ObjectIdentifier(user) { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
  }

  func forget(_ user: AnyObject) { openers = openers.filter { $0.value != ObjectIdentifier(user) } }

  func close(_ descriptor: curl_socket_t) -> Int32 {
    descriptors.remove(descriptor)
    openers[descriptor] = nil
    // Its number, and its ports, may be another connection's next.
    known = known.filter { $0.value != descriptor }
    return Glibc.close(descriptor)
  }

  /// A connection, identified by its ports, which is all that libcurl reports.
  struct Connection: Hashable { let localPort, remotePort: Int32 }

  // MARK: Floods

  /// TLS records that came on a connection since the last byte of an answer, and when the first of them came.
  private var floods: [Connection: (records: Int, began: Milliseconds)] = [:]
  /// No regular server sends so much, for so long, without a byte of an answer.
  private static let floodRecords = 1000
  private static let floodTime: Milliseconds = 5000

  /// Counts a record that is not known to be part of an answer. Records without end, such as session tickets, keep
  /// libcurl 7.88 within one curl_multi_perform(3), and so hold up all transfers, timeouts and signals. The connection
  /// is shut down here, within one of libcurl's callbacks.
  func noteRecord(on connection: Connection) {
    let now = monotonicMilliseconds()
    var flood = floods[connection] ?? (0, now)
    flood.records += 1
    floods[connection] = flood
    guard flood.records >= Self.floodRecords, now - flood.began >= Self.floodTime else { return }
    floods[connection] = nil
    for descriptor in descriptors where isEnd(descriptor, of: connection) { shutdown(descriptor, Int32(SHUT_RDWR)) }
  }

  func noteAnswer(on connection: Connection) { floods[connection] = nil }

  private func isEnd(_ descriptor: Int32, of connection: Connection) -> Bool {
    port(descriptor, getsockname) == connection.localPort && port(descriptor, getpeername) == connection.remotePort
  }

  func hasUnreadBytes(_ connection: Connection) -> Bool {
    // Two sockets may share a port if their own addresses differ: then either with bytes to read counts.
    let wanted = known[connection].map { [$0] } ?? descriptors.filter { isEnd($0, of: connection) }
    if wanted.count == 1 { known[connection] = wanted[0] }
    return wanted.contains { descriptor in
      var byte: UInt8 = 0
      return recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }
  }

  private func port(
    _ descriptor: Int32, _ name: (Int32, UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> Int32? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { storage in
      storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        guard name(descriptor, address, &length) == 0 else { return nil }
        // The port is at the same place in sockaddr_in and sockaddr_in6 (ip(7), ipv6(7)).
        guard [AF_INET, AF_INET6].contains(Int32(address.pointee.sa_family)) else { return nil }
        return UnsafeRawPointer(address).withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
          Int32(UInt16(bigEndian: $0.pointee.sin_port))
        }
      }
    }
  }
}
