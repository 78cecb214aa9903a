internal import Glibc
internal import SystemPackage

/// An open directory that is read a buffer at a time, so that a million names are never in memory together. An entry
/// that moves meanwhile may be missed or seen twice (readdir(3)).
package final class DirectoryStream {
  private static let bufferSize = 32 * 1024

  /// nil for a directory that need not exist, and does not.
  private let directory: SharedFile?
  private let passedOver: FileName?
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferSize, alignment: 8)
  private var filled = 0
  private var position = 0

  /// - Parameter passedOver: left out if it is a directory.
  init(_ directory: consuming OwnedFile, without passedOver: FileName? = nil) {
    self.directory = directory.shared()
    self.passedOver = passedOver
  }

  init() { (directory, passedOver) = (nil, nil) }

  deinit { buffer.deallocate() }

  /// The next name other than `.` and `..`; nil at the end.
  package func next() throws(SpoolError) -> FileName? {
    while true {
      if position == filled {
        position = 0
        filled = try directory?.readEntries(into: buffer) ?? 0
        if filled == 0 { return nil }
      }
      // struct linux_dirent64 (getdents64(2)): inode and offset, 8 bytes each, the entry's length at 16, the type at
      // 18, then the name.
      let entry = UnsafeRawBufferPointer(rebasing: buffer[position..<filled])
      let length = Int(entry.loadUnaligned(fromByteOffset: 16, as: UInt16.self))
      position += length
      let name = entry[19..<length].prefix { $0 != 0 }
      if name.elementsEqual(".".utf8) || name.elementsEqual("..".utf8) { continue }
      let file = FileName(Array(name))
      if file == passedOver, try isDirectory(file) { continue }
      return file
    }
  }

  /// All that are left, of a directory that has few.
  func names() throws(SpoolError) -> [FileName] {
    var names: [FileName] = []
    while let name = try next() { names.append(name) }
    return names
  }

  private func isDirectory(_ name: FileName) throws(SpoolError) -> Bool {
    guard let directory else { return false }
    return try directory.system.statusIfPresent(directory.number, Path(name))?.isDirectory ?? false
  }
}

extension System {
  /// All names in a directory that has few.
  /// - Parameter flags: of open(2), besides those of a directory.
  func names(
    in directory: Int32, _ path: Path = Path("."), _ flags: Int32 = O_NOFOLLOW
  ) throws(SpoolError) -> [FileName] {
    try DirectoryStream(open(directory, path, O_RDONLY | O_DIRECTORY | flags)).names()
  }

  /// Those that are not to be ignored, in a directory of the spool's owner, which may be a link; none where there is
  /// none.
  func namesIfPresent(in directory: Int32, _ path: Path) throws(SpoolError) -> [FileName] {
    let names = try orNil(names(in: directory, path, 0), on: .noSuchFileOrDirectory)
    return (names ?? []).filter { !$0.isIgnored }.sorted()
  }
}
