internal import Glibc
internal import Synchronization
internal import SystemPackage

enum FileLock { case exclusive, shared }

/// A descriptor with one owner. It is closed when the owner lets go of it.
///
/// A lock is given back first, because close(2) alone does not always do that: the lock is the open file's (flock(2)),
/// which a child has as well between its fork and its exec. What this process locks next would seem to be another's.
struct Descriptor: ~Copyable, Sendable {
  fileprivate(set) var number: Int32
  private let kernel: Kernel
  /// The lock that this process has taken by it; nil for none.
  var lock: FileLock?

  init(_ number: Int32, of kernel: Kernel) { (self.number, self.kernel) = (number, kernel) }

  deinit {
    if number < 0 { return }
    if lock != nil { _ = kernel.lock(number, LOCK_UN) }
    _ = kernel.close(number)
  }

  /// Gives the lock back. The caller has to close the number.
  consuming func release() -> Int32 {
    if lock != nil { _ = kernel.lock(number, LOCK_UN) }
    defer { number = -1 }
    return number
  }
}

/// An open file or directory that one function or value owns: it is closed at the end of its scope.
struct OwnedFile: OpenFile, ~Copyable, Sendable {
  fileprivate var descriptor: Descriptor
  var path: Path
  let system: System

  init(_ number: Int32, _ path: Path, _ system: System) {
    descriptor = Descriptor(number, of: system.kernel)
    (self.path, self.system) = (path, system)
  }

  var number: Int32 { descriptor.number }
  var heldLock: FileLock? { descriptor.lock }

  /// flock(2) LOCK_EX | LOCK_NB: false if another open file has the lock. It is released when the file is closed.
  ///
  /// NFS gives an exclusive lock only by a descriptor that is open for writing (EBADF). By another one the lock is
  /// shared, which excludes all that can write.
  mutating func lock() throws(SpoolError) -> Bool {
    do throws(SpoolError) {
      guard try tryLock() else { return false }
    } catch  where error.errno == .badFileDescriptor {
      return try lockShared()
    }
    descriptor.lock = .exclusive
    return true
  }

  /// The same, again and again until it succeeds or the time is over.
  /// - Parameter limit: in milliseconds; nil for as long as it takes.
  /// - Parameter interval: milliseconds between two tries.
  /// - Parameter wait: called before each of them but the first.
  mutating func lock(within limit: Int?, every interval: Int, wait: () -> Void = {}) throws(SpoolError) -> Bool {
    var waited = 0
    while try !lock() {
      if let limit, waited >= limit { return false }
      wait()
      Host.current.wait(milliseconds: interval)
      waited += interval
    }
    return true
  }

  /// flock(2) LOCK_SH | LOCK_NB: false if another open file has the lock for itself.
  mutating func lockShared() throws(SpoolError) -> Bool {
    guard try tryLock(LOCK_SH) else { return false }
    descriptor.lock = .shared
    return true
  }

  consuming func shared() -> SharedFile { SharedFile(self) }
}

/// An open file that several hold: a job's own, and the flushes, readings and copies on other threads that need it open
/// until they end. It is closed when the last one lets go of it, or by ``close()``.
///
/// A class, because values that are copied, such as ``Flush``, cannot own a `~Copyable` one.
final class SharedFile: OpenFile, Sendable {
  private struct State: ~Copyable {
    var descriptor: Descriptor?
    var path: Path
  }

  private let state: Mutex<State>
  let system: System

  fileprivate init(_ file: consuming OwnedFile) {
    system = file.system
    let path = file.path
    state = Mutex(State(descriptor: file.descriptor, path: path))
  }

  var number: Int32 {
    state.withLock { state in
      switch state.descriptor {
      case .some(let descriptor): descriptor.number
      case nil: -1
      }
    }
  }

  var path: Path {
    get { state.withLock { $0.path } }
    set { state.withLock { $0.path = newValue } }
  }

  var isOpen: Bool { number >= 0 }

  /// The lock that this process has taken by it; nil for none, and once the file is closed.
  var lock: FileLock? {
    state.withLock { state in
      switch state.descriptor {
      case .some(let descriptor): descriptor.lock
      case nil: nil
      }
    }
  }

  /// Closes the file for all its users; does nothing if it is closed.
  /// - Throws: ``SpoolError``: close(2) may be the last chance to hear of a failed write.
  func close() throws(SpoolError) {
    let number: Int32? = state.withLock { state in
      guard let descriptor = state.descriptor.take() else { return nil }
      return descriptor.release()
    }
    if let number { try system.close(number, path) }
  }
}

extension System {
  /// close(2). On Linux the descriptor is gone even after EINTR, so that is no error.
  func close(_ number: Int32, _ path: Path) throws(SpoolError) {
    try orNil(call(.close, path.display, repeatable: false) { _ in Int(kernel.close(number)) }, on: .interrupted)
  }
}
