internal import CLinux
internal import Glibc
internal import Spool
internal import SystemPackage

/// The spool that one `spoolrun get` works in.
struct GetSpool {
  let spool: Spool
  /// Where it is, if it is beside the files.
  let directory: GetDirectory?
  /// What was fetched earlier into the directory of the files, by the jobs.
  var receipts: GetRecords.Receipts
  /// The person's own spool, if it has receipts of earlier commands.
  var former: Spool?
  /// What its file system can do; nil if it was not tried.
  var traits: FileSystemTraits?
  /// nil if it is beside the files.
  private let lock: SharedLock?

  init(_ spool: Spool, _ receipts: GetRecords.Receipts = [:], in directory: GetDirectory? = nil) {
    (self.spool, self.receipts, self.directory) = (spool, receipts, directory)
    lock = directory == nil ? SharedLock(of: spool) : nil
  }

  /// The one that `--spool` names. It may be misspelled, so only its own last part is made.
  static func named(_ location: String) throws -> GetSpool { GetSpool(try PersonalSpool.open(location)) }

  /// The one beside the files, or where there can be none, the person's own.
  /// - Parameter state: the location of the person's own, and of the records.
  static func own(for items: [GetItem], _ state: String) throws -> GetSpool {
    makeDirectories(above: state, mode: 0o700)
    let parent = items.first?.directory ?? "/"
    do throws(SpoolError) { try Spool.checkSettings(PersonalSpool.settings) } catch {
      throw ExitStatus.configuration.after("your own defaults and hooks cannot be used: \(error)")
    }
    let former = isDirectory("\(state)/\(Directory.files.rawValue)") ? try PersonalSpool.openOwn(state) : nil
    let records = GetRecords(state)
    do throws(SpoolError) { try records.make() } catch {
      throw ExitStatus.cannotCreate.after(
        "\(escaped(state)) cannot be created: \(error); set XDG_STATE_HOME to a directory that you may write to, or "
          + "name a spool with --spool")
    }
    let receipts: GetRecords.Receipts
    do throws(SpoolError) {
      if let former {
        for item in items where try isUndone(item, in: former) {
          Terminal.error("goes on with what \(escaped(state)) has of \(escaped(item.shown))", .info)
          return GetSpool(former, try records.receipts(in: parent))
        }
      }
      switch try GetDirectory.open(in: parent, records) {
      case .opened(let directory):
        var found = try beside(directory)
        let obstacles = found.traits?.obstacles ?? []
        if obstacles.isEmpty {
          (found.receipts, found.former) = (try records.receipts(in: parent), former)
          return found
        }
        _ = try directory.removeIfDone(found.spool)
        say(parent, obstacles.joined(separator: "; "), state)
      case .unusable(let reason): say(parent, reason, state)
      }
      receipts = try records.receipts(in: parent)
    } catch  where error.path.begins(with: escaped(state)) {
      throw ExitStatus.cannotCreate.after(
        "no spool can be made for \(escaped(parent)): \(error); set XDG_STATE_HOME, or name a spool with --spool")
    } catch {
      // What is there needs no spool to be compared with its receipt.
      let known = (try? records.receipts(in: parent)) ?? [:]
      guard [.readOnlyFileSystem, .permissionDenied, .notPermitted].contains(error.errno),
        items.allSatisfy({ known[$0.job.fileName] != nil })
      else { throw ExitStatus.cannotCreate.after("\(escaped(parent)) cannot be written to: \(error)") }
      receipts = known
    }
    return GetSpool(try former ?? PersonalSpool.openOwn(state), receipts)
  }

  private static func say(_ parent: String, _ reason: String, _ state: String) {
    Terminal.error(
      "until a file is complete, its data is in \(escaped(state)), and not in \(escaped(parent)): \(reason)", .info)
  }

  private static func isUndone(_ item: GetItem, in spool: Spool) throws(SpoolError) -> Bool {
    let place = try JobSearch(spool).place(of: item.job)
    return place.map { $0.directory != .done && $0.directory != .standing } ?? false
  }

  private static func beside(_ directory: GetDirectory) throws(SpoolError) -> GetSpool {
    let location = GetDirectory.location(in: directory.parent)
    let (owner, boot) = WorkerID.current()
    let spool = try Spool(location, owner: owner, boot: boot, settings: PersonalSpool.settings, isBesideFiles: true)
    guard directory.isDirectory(of: spool) else {
      throw SpoolError(
        call: .open, path: escaped(location), errno: .ioError, reason: "another directory has taken its place")
    }
    var found = GetSpool(spool, in: directory)
    do throws(SpoolError) { found.traits = try FileSystemTrial(spool).run() } catch {
      // The first error is the one to tell.
      _ = try? directory.removeIfDone(spool)
      throw error
    }
    return found
  }

  /// Finds the jobs of the same files and URLs that are called otherwise, since `spoolrun url` has given them the URL.
  func recognise(_ items: inout [GetItem]) throws(SpoolError) {
    guard spool.isBesideFiles, let directory = items.first?.directory else { return }
    let left = try OwnSpools.left(of: directory, in: spool, andPaused: true)
    func key(_ name: String, _ asked: JobRequest) -> ExactText? {
      asked.knownURL.map { "\($0) \(name)".exact }
    }
    let names = Set(left.map(\.job.fileName))
    let jobs = Dictionary(left.map { (key($0.name, $0.asked), $0.job) }) { first, _ in first }
    for index in items.indices where !names.contains(items[index].job.fileName) {
      guard let key = key(items[index].name, items[index].asked) else { continue }
      items[index].known = jobs[key] ?? items[index].known
    }
  }

  /// Takes away what nobody needs when the command has ended.
  /// - Parameter mistakes: the jobs of URLs that a person has given and that no other attempt would help.
  /// - Parameter found: those of files that were there. An earlier one may have been to fetch its file again.
  func finish(_ mistakes: [JobName], found: [JobName]) throws(SpoolError) {
    // A cancel of what is not there looks three times, with pauses.
    func cancelFound() throws(SpoolError) {
      for job in found where try !JobSearch(spool).places(of: job.fileName, in: GetDirectory.undone).isEmpty {
        _ = try Steering(spool).perform(.cancel, job.fileName)
      }
    }
    if let lock, !found.isEmpty, lock.isAlone(), try WorkerFiles(spool).living().isEmpty { try cancelFound() }
    _ = try directory?.removeIfDone(spool) { (isAlone) throws(SpoolError) in
      for job in mistakes where try spool.status(.partial, job.part) == nil {
        // Its receipt tells of a file that is there.
        if try JobSearch(spool).job(.failed, job.fileName)?.journal.publication.lastReceipt != nil { continue }
        _ = try Steering(spool).perform(.cancel, job.fileName, in: .failed)
      }
      // Where no lock tells of other commands, a worker may be that of one which runs the job.
      var isFree = isAlone
      if !isFree { isFree = try WorkerFiles(spool).living().isEmpty }
      if isFree { try cancelFound() }
    }
  }
}

/// A lock (flock(2)) of a spool's directory that all commands in it share, as they do of a ``GetDirectory``. From the
/// drop of a job to the start of its worker, nothing else tells that a command is there.
private final class SharedLock {
  private let file: Int32

  /// Waits for a command that has it for itself, as one that ends may for a moment.
  init(of spool: Spool) {
    file = open(spool.location, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    for _ in 0..<6000 {
      if flock(file, LOCK_SH | LOCK_NB) == 0 || errno != EAGAIN { break }
      Host.current.wait(milliseconds: 10)
    }
  }

  deinit { close(file) }

  /// Whether no other command is there, as far as the file system has locks. From then on, none comes.
  func isAlone() -> Bool { flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EAGAIN }
}

extension PersonalSpool {
  /// The person's own, with the person's settings.
  static func openOwn(_ location: String) throws -> Spool { try open(location, settings: settings) }

  /// Makes it when it is missing, but no directory above it.
  static func open(_ location: String, settings: [String]? = nil) throws -> Spool {
    if !isDirectory("\(location)/\(Directory.files.rawValue)") {
      do throws(SpoolError) { try Spool.create(location) } catch {
        throw ExitStatus.cannotCreate.after("\(escaped(location)) cannot be created: \(error)")
      }
    }
    return try SpoolOpening.open(location, for: .changing, settings: settings)
  }
}

/// Makes those directories above `path` that are missing. An error shows when what is at `path` is made or opened.
func makeDirectories(above path: String, mode: mode_t) {
  for slash in path.utf8.indices.dropFirst() where path.utf8[slash] == UInt8(ascii: "/") {
    _ = mkdir(String(path[..<slash]), mode)
  }
}
