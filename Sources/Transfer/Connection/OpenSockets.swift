internal import CCurl
internal import Glibc

/// The sockets that libcurl has open, so that a connection can be checked before it is used again.
///
/// libcurl 7.88 takes whatever comes on a reused connection for the answer to its latest request. What a server sent
/// beyond the previous body, or unasked, would become the next job's data.
final class OpenSockets {
  private var descriptors: Set<Int32> = []
  /// Who uses each connection.
  private var users: [Connection: Set<ObjectIdentifier>] = [:]
  /// Connections that are known to speak HTTP/2, which several may share.
  private var shareable: Set<Connection> = []
  /// The open socket of each connection that has had a request. Its ports do not change before it is closed.
  private var known: [Connection: Int32] = [:]

  /// Who opened a socket for itself, as long as it uses it.
  private var openers: [Int32: ObjectIdentifier] = [:]

  func open(_ address: curl_sockaddr, for opener: AnyObject? = nil) -> curl_socket_t {
    let descriptor = socket(address.family, address.socktype | Int32(SOCK_CLOEXEC.rawValue), address.protocol)
    if descriptor >= 0 {
      descriptors.insert(descriptor)
      openers[descriptor] = opener.map { ObjectIdentifier($0) }
    }
    return descriptor
  }

  /// Shuts down what this user has opened, and the connection.
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
    if let port = port(descriptor, getsockname) { shareable = shareable.filter { $0.localPort != port } }
    return Glibc.close(descriptor)
  }

  /// A connection, identified by its ports, which is all that libcurl reports.
  struct Connection: Hashable {
    let localPort, remotePort: Int32
  }

  /// Lets `user` onto a connection.
  ///
  /// libcurl 7.88 gives a transfer that may share a connection of HTTP/2 one of HTTP/1.1 that is in use, if its host
  /// spoke HTTP/2 before. Each would get the other's answer.
  /// - Parameter isShareable: whether it speaks HTTP/2; nil if that is not known of this connection.
  /// - Returns: false if others use it, and it is not known to speak HTTP/2.
  func enter(_ connection: Connection, _ user: AnyObject, isShareable: Bool?) -> Bool {
    switch isShareable {
    case true?: shareable.insert(connection)
    // Another connection had the same ports.
    case false?: shareable.remove(connection)
    case nil: break
    }
    let others = users[connection, default: []].subtracting([ObjectIdentifier(user)])
    guard others.isEmpty || shareable.contains(connection) else { return false }
    users[connection, default: []].insert(ObjectIdentifier(user))
    return true
  }

  func leave(_ connection: Connection, _ user: AnyObject) {
    users[connection]?.remove(ObjectIdentifier(user))
    if users[connection, default: []].isEmpty { (users[connection], floods[connection]) = (nil, nil) }
  }

  // MARK: Floods

  /// TLS records that came on a connection since the last byte of an answer.
  private struct Flood {
    var records = 0
    let began: Milliseconds
  }
  private var floods: [Connection: Flood] = [:]
  /// No regular server sends so much, for so long, without a byte of an answer.
  private static let floodRecords = 1000
  private static let floodTime: Milliseconds = 5000

  /// Counts a record that is not known to be part of an answer. HTTP/2 frames without end, such as SETTINGS, keep
  /// libcurl 7.88 within one curl_multi_perform(3), and so hold up all transfers, timeouts and signals. The connection
  /// is shut down here, within one of libcurl's callbacks.
  func noteRecord(on connection: Connection) {
    let now = monotonicMilliseconds()
    var flood = floods[connection] ?? Flood(began: now)
    flood.records += 1
    floods[connection] = flood
    guard flood.records >= Self.floodRecords, now - flood.began >= Self.floodTime else { return }
    floods[connection] = nil
    for descriptor in descriptors where isEnd(descriptor, of: connection) {
      shutdown(descriptor, Int32(SHUT_RDWR))
    }
  }

  /// Something of an answer came.
  func noteAnswer(on connection: Connection) { floods[connection] = nil }

  private func isEnd(_ descriptor: Int32, of connection: Connection) -> Bool {
    port(descriptor, getsockname) == connection.localPort && port(descriptor, getpeername) == connection.remotePort
  }

  /// Whether a connection has bytes to read before its next request.
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
