internal import CLinux
internal import Glibc

/// Tells when an address or a route appears or goes (rtnetlink(7)).
@WorkerLoop
final class NetworkWatch {
  nonisolated let descriptor: Int32

  /// nil where the kernel has no rtnetlink for us: then jobs wait for their time.
  init?() {
    descriptor = spoolrun_network_events()
    guard descriptor >= 0 else { return nil }
  }

  deinit { close(descriptor) }

  /// Whether anything was told since the last call; what it was, `NetworkPresence` knows better.
  func hasNews() -> Bool {
    var buffer = [UInt8](repeating: 0, count: 16_384)
    var isNew = false
    while true {
      let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      // ENOBUFS: some were dropped, so there was something.
      if count > 0 || (count < 0 && errno == ENOBUFS) { isNew = true } else { return isNew }
    }
  }
}
