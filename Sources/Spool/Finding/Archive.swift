internal import Glibc
internal import SystemPackage

/// The receipts that `clean --archive` has moved out of `done/`: each is a file in a directory of its month, such as
/// `done/archive/2026-11/NAME`. Where that name is taken, the directory is `2026-11~2`, and so on
/// (``JobSearch/number(ofTry:)``): a receipt keeps its name, and nothing there is ever replaced. Workers do not look
/// here.
package struct Archive: Sendable {
  static let directory = Path(.done, Spool.archiveName)

  let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  func open(_ path: Path) throws(SpoolError) -> OwnedFile {
    try spool.system.open(spool.root, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  }

  /// - Parameter time: when a job was done.
  static func path(of time: Timestamp, _ number: Int = 1) -> Path {
    directory.appending(FileName("\(time)".prefix(7) + (number == 1 ? "" : "~\(number)")))
  }

  // MARK: reading

  /// The directories of months, and gzipped archives of version 0.2, the oldest first.
  private func entries() throws(SpoolError) -> [FileName] {
    // A receipt may have the name.
    guard try spool.system.statusIfPresent(spool.root, Self.directory)?.isDirectory == true else { return [] }
    let names = try orNil(spool.system.names(in: spool.root, Self.directory), where: \.isGone) ?? []
    return names.filter { !$0.isIgnored }.sorted()
  }

  /// The gzipped archives of version 0.2. `contrib/unarchive` makes receipts of them.
  func oldFiles() throws(SpoolError) -> [Path] {
    try entries().filter { $0.bytes.suffix(7).elementsEqual(".tsv.gz".utf8) }.map(Self.directory.appending)
  }

  package func contains(_ name: FileName) throws(SpoolError) -> Bool {
    var isThere = false
    try eachPath(named: [name]) { (_, _) in isThere = true }
    return isThere
  }

  /// Hands the path of each receipt to `body`, the oldest month first. Whoever reads `done/` too reads it before: a
  /// receipt that moves meanwhile is seen twice then, by the same inode, and not missed.
  /// - Parameter names: only these; nil for all.
  /// - Parameter modifiedSince: months that nothing was moved to since are left out, in seconds since the epoch.
  package func eachPath(
    named names: Set<FileName>? = nil, modifiedSince: Int64 = .min, _ body: (Path, FileName) throws(SpoolError) -> Void
  ) throws(SpoolError) {
    for directory in try entries().map(Self.directory.appending) {
      guard let status = try spool.system.statusIfPresent(spool.root, directory), status.isDirectory,
        status.modified >= modifiedSince
      else { continue }
      if let names {
        // A person may name what is no name, such as `../x`.
        for name in names where name.isEntry {
          let path = directory.appending(name)
          if try spool.system.statusIfPresent(spool.root, path) != nil { try body(path, name) }
        }
      } else {
        // A person may remove a month while it is read.
        let stream = try orNil(DirectoryStream(open(directory)), on: .noSuchFileOrDirectory)
        while let name = try orNil(stream?.next(), on: .noSuchFileOrDirectory) {
          if !name.isIgnored { try body(directory.appending(name), name) }
        }
      }
    }
  }
}
