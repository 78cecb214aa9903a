internal import CCurl
internal import Glibc

/// The sockets that libcurl has open, so that a connection can be looked at before it is used again.
///
/// libcurl 7.88 takes whatever comes on a reused connection for the answer to its latest request. What a server sent beyond the body before, or
/// unasked, would so become the next job's data.
final class OpenSockets {
  private var descriptors: Set<Int32> = []
  /// The socket last found at a local port, to be looked at first.
  private var known: [Int32: Int32] = [:]

  func open(_ address: curl_sockaddr) -> curl_socket_t {
    let descriptor = socket(address.family, address.socktype | Int32(SOCK_CLOEXEC.rawValue), address.protocol)
    if descriptor >= 0 { descriptors.insert(descriptor) }
    return descriptor
  }

  func close(_ descriptor: curl_socket_t) -> Int32 {
    descriptors.remove(descriptor)
    // Or there would be one for each port in the end.
    if let port = port(descriptor, getsockname) { known[port] = nil }
    return Glibc.close(descriptor)
  }

  /// Whether there is anything to read, before anything was asked, on the connection between these two ports.
  func hasUnreadBytes(localPort: Int32, remotePort: Int32) -> Bool {
    func isWanted(_ descriptor: Int32) -> Bool {
      port(descriptor, getsockname) == localPort && port(descriptor, getpeername) == remotePort
    }
    // Two sockets may share a port if their own addresses differ: then whichever has something to read counts.
    var wanted = known[localPort].map { [$0] } ?? []
    if wanted.isEmpty || !descriptors.contains(wanted[0]) || !isWanted(wanted[0]) {
      wanted = descriptors.filter(isWanted)
      known[localPort] = wanted.count == 1 ? wanted[0] : nil
    }
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
        // The port stands at the same place in sockaddr_in and sockaddr_in6 (ip(7), ipv6(7)).
        guard [AF_INET, AF_INET6].contains(Int32(address.pointee.sa_family)) else { return nil }
        return UnsafeRawPointer(address).withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
          Int32(UInt16(bigEndian: $0.pointee.sin_port))
        }
      }
    }
  }
}
