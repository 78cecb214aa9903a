import Glibc
import Synchronization

/// A TCP socket that listens on 127.0.0.1 at a port that the kernel chooses.
func listenOnLoopback() throws(TestSupportError) -> Int32 {
  let listener = try bindToLoopback()
  makeNonBlocking(listener)
  guard listen(listener, 128) == 0 else {
    let code = errno
    close(listener)
    throw TestSupportError("listen", "127.0.0.1", errno: code)
  }
  return listener
}

/// A TCP socket bound to a free port of 127.0.0.1 that refuses connections, because it does not listen.
package struct DeadPort: ~Copyable {
  private let socket: Int32
  package let port: UInt16

  package init() throws(TestSupportError) {
    let bound = try bindToLoopback()
    do {
      port = try boundPort(bound)
    } catch {
      close(bound)
      throw error
    }
    socket = bound
  }

  deinit {
    close(socket)
  }
}

/// What ``freePort()`` has returned.
private let givenPorts = Mutex<Set<UInt16>>([])

/// A port of 127.0.0.1 that is free, for servers that must be told one. It stays free until the server has it: no other
/// call returns it, and it is below those that the kernel gives to connections (ip(7), ip_local_port_range).
package func freePort() throws(TestSupportError) -> UInt16 {
  while true {
    let port = UInt16.random(in: 10_000..<32_768)
    guard givenPorts.withLock({ $0.insert(port).inserted }) else { continue }
    do {
      close(try bindToLoopback(port))
      return port
    } catch  where error.code == EADDRINUSE {
    }
  }
}

/// A TCP socket that is connected to a port of 127.0.0.1.
func connectToLoopback(_ port: UInt16) throws(TestSupportError) -> Int32 {
  try loopbackSocket("connect", port) { Glibc.connect($0, $1, $2) }
}

/// - Parameter port: 0 for one that the kernel chooses.
private func bindToLoopback(_ port: UInt16 = 0) throws(TestSupportError) -> Int32 {
  try loopbackSocket("bind", port) { Glibc.bind($0, $1, $2) }
}

private func loopbackSocket(
  _ name: String, _ port: UInt16, _ call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
) throws(TestSupportError) -> Int32 {
  let socket = privately { [Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)] }[0]
  guard socket >= 0 else { throw TestSupportError("socket", "", errno: errno) }
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
  address.sin_port = port.bigEndian
  let result = withUnsafePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      call(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
  guard result == 0 else {
    let code = errno
    close(socket)
    throw TestSupportError(name, "127.0.0.1", errno: code)
  }
  return socket
}

func boundPort(_ socket: Int32) throws(TestSupportError) -> UInt16 {
  var address = sockaddr_in()
  var length = socklen_t(MemoryLayout<sockaddr_in>.size)
  let result = withUnsafeMutablePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
  }
  guard result == 0 else { throw TestSupportError("getsockname", "", errno: errno) }
  return UInt16(bigEndian: address.sin_port)
}

/// The next connection of a non-blocking listener, non-blocking itself; small writes on it leave at once,
/// so that a script's pieces stay pieces.
func acceptConnection(_ listener: Int32) -> Int32 {
  let socket = privately { [accept(listener, nil, nil)] }[0]
  guard socket >= 0 else { return socket }
  makeNonBlocking(socket)
  var on: Int32 = 1
  setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
  return socket
}

func makeNonBlocking(_ descriptor: Int32) {
  _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
}

/// Whether anybody listens at a port of 127.0.0.1 (proc_net_tcp(5)).
package func isListening(_ port: UInt16) -> Bool {
  let place = "0100007F:" + String(UInt32(port) | 0x1_0000, radix: 16).dropFirst().uppercased()
  let table = (try? readFile("/proc/net/tcp")) ?? []
  return String(decoding: table, as: UTF8.self).split(separator: "\n").contains { line in
    let words = line.split(separator: " ")
    return words.count > 3 && words[1] == place && words[3] == "0A"
  }
}
