internal import CCurl
internal import Glibc

/// The sockets that libcurl has open, so that a connection can be looked at before it is used again.
///
/// libcurl 7.88 takes whatever comes on a reused connection for the answer to its latest request. What a server sent beyond the body before, or
/// unasked, would so become the next job's data.
final class OpenSockets {
  private var descriptors: Set<Int32> = []

  func open(_ address: curl_sockaddr) -> curl_socket_t {
    let descriptor = socket(address.family, address.socktype | Int32(SOCK_CLOEXEC.rawValue), address.protocol)
    if descriptor >= 0 { descriptors.insert(descriptor) }
    return descriptor
  }

  func close(_ descriptor: curl_socket_t) -> Int32 {
    descriptors.remove(descriptor)
    return Glibc.close(descriptor)
  }

  /// Whether there is anything to read, before anything was asked, on the connection between these two ports.
  func hasUnreadBytes(localPort: Int32, remotePort: Int32) -> Bool {
    for descriptor in descriptors
    where port(descriptor, getsockname) == localPort && port(descriptor, getpeername) == remotePort {
      var byte: UInt8 = 0
      if recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0 { return true }
    }
    return false
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
