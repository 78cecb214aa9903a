/// The names that the jobs of one list want, or the outputs, and which of them several want.
///
/// They are kept as fingerprints, so that a million names fit 32 MiB.
package struct ListNames: Sendable {
  private var wanted: Set<Fingerprint> = []
  /// Those that the list itself gives, and that so cannot be changed.
  private var fixed: Set<Fingerprint> = []
  private var contested: Set<Fingerprint> = []
  /// The names that came in place of contested ones.
  private var given: Set<Fingerprint> = []

  /// Of a list without jobs.
  package init() {}

  /// Takes note of a name that can be changed.
  package mutating func want(_ name: [UInt8]) {
    let print = Fingerprint(name)
    if fixed.contains(print) || !wanted.insert(print).inserted { contested.insert(print) }
  }

  /// Takes note of a name that cannot be changed.
  /// - Returns: whether no other such job has it.
  package mutating func fix(_ name: [UInt8]) -> Bool {
    let print = Fingerprint(name)
    if wanted.contains(print) { contested.insert(print) }
    return fixed.insert(print).inserted
  }

  /// Whether several jobs want a name, so that those for which it can be changed need others.
  package var isAnyContested: Bool { !contested.isEmpty }

  /// Whether several jobs want this name.
  package func isContested(_ name: [UInt8]) -> Bool { contested.contains(Fingerprint(name)) }

  /// Whether a job wants it, or has it from the list.
  package func isWanted(_ name: [UInt8]) -> Bool {
    let print = Fingerprint(name)
    return wanted.contains(print) || fixed.contains(print)
  }

  /// Gives a name in place of a contested one.
  /// - Returns: whether no other job has or wants it.
  package mutating func give(_ name: [UInt8]) -> Bool { !isWanted(name) && given.insert(Fingerprint(name)).inserted }
}
