import Glibc
import Synchronization

/// A condition that one thread opens once and that others can wait for together with a socket:
/// the read end of a pipe whose write end is closed to open the gate.
package final class Gate: Sendable {
  let descriptor: Int32
  private let writeEnd: Mutex<Int32?>

  package init() throws(TestSupportError) {
    let ends = try makePipe()
    descriptor = ends.read
    writeEnd = Mutex(ends.write)
  }

  /// Lets everyone through who waits or will wait. Opening it again does nothing.
  package func open() {
    writeEnd.withLock { end in
      if let open = end { close(open) }
      end = nil
    }
  }

  /// Whether `open()` was called.
  package var isOpen: Bool {
    writeEnd.withLock { $0 == nil }
  }

  deinit {
    open()
    close(descriptor)
  }
}
