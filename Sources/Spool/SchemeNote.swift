internal import Glibc
internal import SystemPackage

/// The URL schemes that a spool's workers allow, for those that drop jobs. Only a hint: the worker decides.
package struct SchemeNote {
  private let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  private static let schemesPath = Path("protocols")
  /// Much more than the names of all schemes have.
  private static let mostSchemeBytes = 1024

  /// The schemes that the worker which started last allows; nil if these are the default ones.
  /// - Throws: ``SpoolError``, EACCES if this user may not know.
  package func read() throws(SpoolError) -> Set<String>? {
    guard let bytes = try spool.contents(Self.schemesPath, limit: Self.mostSchemeBytes) else { return nil }
    let text = String(decoding: bytes, as: UTF8.self)
    return Set(text.split(at: ", \n").map { $0.lowercasedASCII })
  }

  /// Notes which schemes a worker allows that starts now. Writes only if that has changed.
  /// - Parameter schemes: nil for the default ones.
  package func write(_ schemes: Set<String>?) throws(SpoolError) {
    guard try read() != schemes else { return }
    guard let schemes else { return try spool.system.unlink(spool.root, Self.schemesPath) }
    let temporary = spool.temporary(FileName("protocols"))
    // Users who may drop jobs may read it, as far as the umask allows.
    let file = try spool.system.create(spool.root, temporary, O_WRONLY | O_EXCL | O_NOFOLLOW, mode: 0o644)
    try file.write(Array((schemes.sorted().joined(separator: ",") + "\n").utf8), at: 0)
    try spool.system.rename(spool.root, temporary, Self.schemesPath)
  }
}
