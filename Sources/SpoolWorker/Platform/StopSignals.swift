internal import CLinux
internal import Glibc

/// The signals that tell a worker to stop.
struct StopSignals {
  /// Readable when one arrived.
  let descriptor: Int32
  /// Whether one arrived since the last call.
  let arrived: () -> Bool

  /// - Parameter descriptor: a signalfd(2).
  init(_ descriptor: Int32) {
    self.init(descriptor) {
      var info = signalfd_siginfo()
      return read(descriptor, &info, MemoryLayout<signalfd_siginfo>.size) > 0
    }
  }

  init(_ descriptor: Int32, arrived: @escaping () -> Bool) { (self.descriptor, self.arrived) = (descriptor, arrived) }
}
