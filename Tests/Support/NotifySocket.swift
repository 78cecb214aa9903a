import Glibc
import Synchronization

/// A datagram socket as a service manager has it (sd_notify(3)).
package final class NotifySocket: Sendable {
  private let descriptor: Int32
  private let received = Mutex<[String]>([])

  /// - Parameter name: a path, or `@` and an abstract name (unix(7)).
  package init(_ name: String) throws {
    descriptor = privately { [socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)] }[0]
    guard descriptor >= 0 else { throw TestSupportError("socket", name, errno: errno) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = name.hasPrefix("@") ? [0] + name.utf8.dropFirst() : Array(name.utf8)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes.prefix($0.count)) }
    let length = MemoryLayout<sa_family_t>.size + bytes.count
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(length)) }
    }
    guard result == 0 else { throw TestSupportError("bind", name, errno: errno) }
  }

  deinit { close(descriptor) }

  /// The assignments that have come so far, one a line of each message.
  package var assignments: [String] {
    received.withLock { received in
      var buffer = [UInt8](repeating: 0, count: 4096)
      while true {
        let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        guard count >= 0 else { return received }
        received += String(decoding: buffer.prefix(count), as: UTF8.self).split(separator: "\n").map(String.init)
      }
    }
  }
}
