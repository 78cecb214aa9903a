internal import Spool

/// A receipt that `verify` looks at.
enum ListedReceipt: Sendable {
  /// In `done`, or so the command line says.
  case named(FileName)
  /// In `done` when its names were listed. It may be archived since.
  case listed(FileName)
  /// In an archive.
  case archived(ArchivedReceipt)
  /// An archive that cannot be read any further, and why.
  case unreadable(String)

  /// Of its job; nil for what is none.
  var name: FileName? {
    switch self {
    case .named(let name), .listed(let name): name
    case .archived(let receipt): receipt.name
    case .unreadable: nil
    }
  }
}

/// The receipts of a spool: first those in `done`, in the order of their names, then those in the archives.
final class ReceiptList {
  private let spool: Spool
  private var names: ArraySlice<FileName>
  /// nil for all.
  private var wanted: Set<FileName>?
  private var archive: ArchiveStream?
  private var isOver = false

  /// - Parameter names: only these; nil for all.
  /// - Throws: ``SpoolError``.
  init(_ spool: Spool, named names: [FileName]?) throws(SpoolError) {
    self.spool = spool
    guard let names else {
      self.names = try spool.list(.done).sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }[...]
      return
    }
    var wanted: Set<FileName> = []
    for name in names where try spool.status(.done, name) == nil { wanted.insert(name) }
    if !wanted.isEmpty {
      // A name that no archive has is looked for in `done` all the same, and said to be missing there.
      let archive = try ArchiveStream(spool, named: wanted)
      var known: Set<FileName> = []
      while let receipt = try archive.next() { known.insert(receipt.name) }
      wanted = known
    }
    self.names = names.filter { !wanted.contains($0) }[...]
    self.wanted = wanted
  }

  /// How many there are: reads the archives.
  /// - Throws: ``SpoolError``.
  func count() throws(SpoolError) -> Int {
    var count = names.count
    if wanted?.isEmpty == true { return count }
    let archive = try ArchiveStream(spool, named: wanted)
    while true {
      do throws(SpoolError) {
        if try archive.next() == nil { return count }
        count += 1
      } catch  where error.isDamage {
        // It is said when it is read to be verified.
      }
    }
  }

  /// The next receipt; nil at the end.
  func next() -> ListedReceipt? {
    if let name = names.popFirst() { return wanted == nil ? .listed(name) : .named(name) }
    if isOver || wanted?.isEmpty == true { return nil }
    do throws(SpoolError) {
      // Not before: what moves there meanwhile is read twice rather than not at all.
      if archive == nil { archive = try ArchiveStream(spool, named: wanted) }
      if let receipt = try archive?.next() { return .archived(receipt) }
      isOver = true
      return nil
    } catch {
      isOver = archive == nil
      return .unreadable("\(error)")
    }
  }
}
