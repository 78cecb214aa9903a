internal import CLinux
internal import Glibc

/// Whether this machine has a network connection, to distinguish a missing network from a dead server.
/// ``LoopSurroundings`` asks it.
enum NetworkPresence {
  /// Whether an interface other than loopback is up and running and has an IPv4 address, or an IPv6 address that is not
  /// link-local.
  static func hasAddress() -> Bool {
    var list: UnsafeMutablePointer<ifaddrs>?
    // If this fails, nothing is known, and the failure counts as the server's.
    guard getifaddrs(&list) == 0 else { return true }
    defer { freeifaddrs(list) }
    var next = list
    while let entry = next?.pointee {
      next = entry.ifa_next
      let wanted = UInt32(IFF_UP) | UInt32(IFF_RUNNING)
      guard entry.ifa_flags & wanted == wanted, entry.ifa_flags & UInt32(IFF_LOOPBACK) == 0,
        let address = entry.ifa_addr
      else { continue }
      switch Int32(address.pointee.sa_family) {
      case AF_INET: return true
      case AF_INET6:
        let isLinkLocal = UnsafeRawPointer(address).withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
          withUnsafeBytes(of: $0.pointee.sin6_addr) { $0[0] == 0xFE && $0[1] & 0xC0 == 0x80 }
        }
        if !isLinkLocal { return true }
      default: continue
      }
    }
    return false
  }

  /// Whether there is a route beyond the local links for IPv4 or IPv6. An address of one family may be unreachable
  /// because only the other family has a route.
  static func hasRoute() -> Bool {
    // Addresses for documentation (RFC 5737, RFC 3849). Connecting a datagram socket looks up a route and sends nothing
    // (connect(2)).
    ["192.0.2.1", "2001:db8::1"].contains { text in
      var hints = addrinfo()
      hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
      hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
      var found: UnsafeMutablePointer<addrinfo>?
      guard getaddrinfo(text, "9", &hints, &found) == 0, let found else { return false }
      defer { freeaddrinfo(found) }
      let descriptor = socket(found.pointee.ai_family, found.pointee.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
      guard descriptor >= 0 else { return false }
      defer { close(descriptor) }
      return connect(descriptor, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0
    }
  }
}
