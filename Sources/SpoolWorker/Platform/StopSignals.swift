internal import CLinux
internal import Glibc

/// The signals that tell a worker to stop, as a signalfd(2).
struct StopSignals {
  let descriptor: Int32

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Whether one arrived since the last call.
  func arrived() -> Bool {
    var info = signalfd_siginfo()
    return read(descriptor, &info, MemoryLayout<signalfd_siginfo>.size) > 0
  }
}
