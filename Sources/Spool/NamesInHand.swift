internal import Synchronization

/// The names in `cur/` by which this process has claims.
///
/// A person may remove the file of a claim and drop another job of its name before the worker notices. If that one got
/// the same name in `cur/`, each of the two claims would move and rename the other's file.
final class NamesInHand: Sendable {
  private let names = Mutex(Set<FileName>())

  func insert(_ name: FileName) { _ = names.withLock { $0.insert(name) } }
  func remove(_ name: FileName) { _ = names.withLock { $0.remove(name) } }
  func contains(_ name: FileName) -> Bool { names.withLock { $0.contains(name) } }
}
