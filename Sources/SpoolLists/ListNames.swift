/// The names that the jobs of one list want, or the outputs, and which of them several want.
///
/// They are kept as hashes of 64 bits, so that a million names fit 16 MiB. Two names of one hash do little harm: they
/// count as one name that several want.
package struct ListNames: Sendable {
  private var wanted: Set<Int> = []
  /// Those that the list itself gives, and that so cannot be changed.
  private var fixed: Set<Int> = []
  private var contested: Set<Int> = []
  /// The names that came in place of contested ones.
  private var given: Set<Int> = []

  /// Of a list without jobs.
  package init() {}

  /// Takes note of a name that can be changed.
  package mutating func want(_ name: [UInt8]) {
    let hash = byteHash(name)
    if fixed.contains(hash) || !wanted.insert(hash).inserted { contested.insert(hash) }
  }

  /// Takes note of a name that cannot be changed.
  /// - Returns: whether no other such job has it.
  package mutating func fix(_ name: [UInt8]) -> Bool {
    let hash = byteHash(name)
    if wanted.contains(hash) { contested.insert(hash) }
    return fixed.insert(hash).inserted
  }

  /// Whether several jobs want a name, so that those for which it can be changed need others.
  package var isAnyContested: Bool { !contested.isEmpty }

  /// Whether several jobs want this name.
  package func isContested(_ name: [UInt8]) -> Bool { contested.contains(byteHash(name)) }

  /// Whether a job wants it, or has it from the list.
  package func isWanted(_ name: [UInt8]) -> Bool {
    let hash = byteHash(name)
    return wanted.contains(hash) || fixed.contains(hash)
  }

  /// Gives a name in place of a contested one.
  /// - Returns: whether no other job has or wants it.
  package mutating func give(_ name: [UInt8]) -> Bool { !isWanted(name) && given.insert(byteHash(name)).inserted }
}
