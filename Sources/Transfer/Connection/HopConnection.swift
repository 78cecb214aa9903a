internal import CCurl

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

  private let sockets: OpenSockets
  /// The next request needs a new connection: the one at hand had unread bytes, or was left in the middle of an answer.
  private(set) var mustBeFresh = false
  /// libcurl was about to send this hop's request a second time.
  private(set) var wasRepeated = false
  /// The connection that this hop's request went to; over TLS and SSH only.
  private var entered: OpenSockets.Connection?
  /// Whether the connection made for the next request speaks HTTP/2; nil if none was made, or the TLS library does not
  /// show it.
  private var negotiatedHTTP2: Bool?
  /// The peer announced the end of its data (close_notify).
  private(set) var sawCloseNotify = false

  init(_ sockets: OpenSockets) { self.sockets = sockets }

  // MARK: The request

  /// The connection is ready for the request of a hop (CURLOPT_PREREQFUNCTION(3)), or for the one that brings a login.
  func send(over connection: OpenSockets.Connection, _ scheme: Scheme) -> Decision {
    if scheme.channel == .ssh { entered = connection }
    guard scheme.isHTTP else { return .goesOut }
    switch scheme.channel {
    case .plain:
      guard sockets.hasUnreadBytes(connection) else { break }
      if mustBeFresh { return .isUnasked }
      mustBeFresh = true
      return .startsAgain
    case .tls:
      // Session tickets may be waiting, and look like unread bytes. A fresh connection is not shared, even if an
      // earlier one had the same ports.
      guard sockets.enter(connection, self, isShareable: negotiatedHTTP2) || mustBeFresh else {
        mustBeFresh = true
        return .startsAgain
      }
      if let entered, entered != connection { sockets.leave(entered, self) }
      entered = connection
    case .ssh: break
    }
    sawCloseNotify = false
    return .goesOut
  }

  /// libcurl is about to repeat a request that was sent: it does so if a reused connection turns out to be dead, or if
  /// a stream was refused. The second answer would be appended to the first; and after HTTP_1_1_REQUIRED (RFC 9113, 7)
  /// libcurl 7.88 lets several transfers share one HTTP/1.1 connection, and mixes their bodies. So the hop begins
  /// again, once, over HTTP/1.1 on a connection of its own.
  /// - Parameter hasAnswer: something of an answer came.
  func sendAgain(hasAnswer: Bool) -> Decision {
    defer { (wasRepeated, mustBeFresh) = (true, true) }
    return wasRepeated || hasAnswer ? .isCut : .startsAgain
  }

  /// The answer was not read to its end.
  func abandonAnswer() { mustBeFresh = true }

  /// The next hop has another URL.
  func beginNextURL() { wasRepeated = false }

  /// Opens a socket for this hop alone.
  func open(_ address: curl_sockaddr) -> curl_socket_t { sockets.open(address, for: self) }

  /// Ends the connection of this hop, over SSH: a server that is silent would keep libcurl waiting for its answer to
  /// each goodbye.
  func cut() { sockets.cut(entered, of: self) }

  /// Lets others have the connection of this hop.
  func leave() {
    if let entered { sockets.leave(entered, self) }
    sockets.forget(self)
    (entered, negotiatedHTTP2) = (nil, nil)
  }

  // MARK: What it tells

  /// Something of an answer came.
  func noteAnswer() {
    if let entered { sockets.noteAnswer(on: entered) }
  }

  /// The answer's last byte came. libcurl gives the connection to the next request before it reports the end.
  func noteWholeAnswer() {
    if let entered { sockets.leave(entered, self) }
  }

  /// A TLS message that is not data, decrypted (CURLOPT_DEBUGFUNCTION(3), CURLINFO_SSL_DATA_IN).
  ///
  /// libcurl 7.88 reports a TLS connection that was closed without close_notify as a good end: its BIO does not report
  /// the end of file to OpenSSL. So the alert is looked for here. It is the only message of two bytes, level and
  /// description; the description is 0 (RFC 8446, 6.1).
  /// - Parameter isPaused: libcurl keeps what comes for later.
  func receive(tlsMessage: UnsafeRawBufferPointer, isPaused: Bool) {
    if let entered, !isPaused { sockets.noteRecord(on: entered) }
    if tlsMessage.count == 2, tlsMessage[1] == 0 { sawCloseNotify = true }
    // The last such message counts.
    if let isHTTP2 = TLSHandshake.choosesHTTP2(tlsMessage) { negotiatedHTTP2 = isHTTP2 }
  }
}
