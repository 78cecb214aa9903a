internal import CLinux
internal import Glibc

/// Reports when a link, an address or a route appears or disappears (rtnetlink(7)).
@WorkerLoop
final class NetworkWatch {
  nonisolated let descriptor: Int32

  /// nil if the kernel provides no rtnetlink socket. Then jobs wait until they are due.
  init?() {
    descriptor = spoolrun_network_events()
    guard descriptor >= 0 else { return nil }
  }

  deinit { close(descriptor) }

  /// Whether anything was reported since the last call. `NetworkPresence` then determines the state.
  func hasNews() -> Bool {
    var buffer = [UInt8](repeating: 0, count: 16_384)
    var isNew = false
    while true {
      let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      // ENOBUFS: the kernel dropped messages, so there were some.
      if count > 0 || (count < 0 && errno == ENOBUFS) { isNew = true } else { return isNew }
    }
  }
}
